"""A small world to search: documents published through the real ledger, gate and put.

Belongs here: the shortest honest way from texts to published passages. What does not: parsing,
scanning and embedding, which have tests of their own.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from kb_resources.lexical import ANALYZER_VERSION, analyze
from kb_resources.model import (
    Block,
    Chunk,
    DocumentKey,
    ParsedDocument,
    Principal,
    Source,
    SourceKind,
    Verdict,
    content_hash,
    passage_id,
)
from kb_resources.model.chunk import embedding_input
from kb_resources.retrieve import Retriever, SearchResult
from kb_resources.store import documents, locks, passages, staging, vectors, versions
from kb_resources.store.documents import DocumentRow
from kb_resources.store.passages import LexicalRow, PutResult
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

DIM = 16
_numbers = itertools.count(1)
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [
    *("leave", "days", "year", "lead", "rule", "rate", "office", "travel", "budget", "form"),
    *("claim", "sick", "child", "room", "key"),
]


class TinyEmbedder:
    """Hashed words as unit vectors: a real, deterministic embedding of another model's size."""

    model_id = "tiny@1"
    dimensions = DIM

    def __init__(self) -> None:
        self.texts = 0

    def embed(self, texts: Sequence[str], kind: str) -> NDArray[np.float32]:
        self.texts += len(texts) if kind == "passage" else 0
        rows = np.full((len(texts), DIM), 1e-3, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                digest = hashlib.blake2b(word.encode(), digest_size=2).digest()
                row[digest[0] % DIM] += 1 if digest[1] % 2 else -1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def chunks_of(document_id: str, title: str, texts: Sequence[str]) -> tuple[str, tuple[Chunk, ...]]:
    """A body of one paragraph per text, and one chunk per paragraph."""
    body, chunks, seen = "\n\n".join(texts), [], {}
    at_byte = at_char = 0
    for ordinal, text in enumerate(texts):
        digest = content_hash(text)
        nth = seen[digest] = seen.get(digest, -1) + 1
        size = len(text.encode())
        chunks.append(
            Chunk(
                ordinal=ordinal,
                passage_id=passage_id(document_id, (title,), digest, nth),
                text=text,
                context=title,
                heading_path=(title,),
                page=None,
                locator=None,
                byte_start=at_byte,
                byte_end=at_byte + size,
                char_start=at_char,
                char_end=at_char + len(text),
                content_hash=digest,
                embed_hash=content_hash(embedding_input(title, text)),
                token_count=len(text.split()) + 2,
            )
        )
        at_byte += size + 2
        at_char += len(text) + 2
    return body, tuple(chunks)


@dataclass
class World:
    """Publishes and searches; every step is one the stages take too."""

    database: Database
    scope: str
    embedder: TinyEmbedder = field(default_factory=TinyEmbedder)

    def pipeline(self) -> AbstractContextManager[Any]:
        return self.database.transaction("pipeline")

    @property
    def scope_id(self) -> int:
        with self.pipeline() as conn:
            return documents.get_scope(conn, self.scope).scope_id

    def row(self, document_id: str, scope: str | None = None) -> DocumentRow:
        with self.pipeline() as conn:
            return documents.load(conn, [DocumentKey(scope or self.scope, document_id)])[0]

    def ask(self, query: str, **values: Any) -> Any:
        """The first row of a statement run as the pipeline; `scope_id` is bound."""
        with self.pipeline() as conn:
            return conn.execute(query, {"scope_id": self.scope_id, **values}).fetchone()

    def stage(
        self,
        document_id: str,
        texts: Sequence[str],
        *,
        scope: str | None = None,
        language: str = "en",
        title: str | None = None,
        verdict: Verdict | None = Verdict.CLEAN,
        audiences: Sequence[str] = (),
        metadata: dict[str, str] | None = None,
        media_type: str = "text/plain",
    ) -> tuple[DocumentRow, tuple[Chunk, ...]]:
        """Everything up to and including chunk."""
        title, scope = title or document_id, scope or self.scope
        body, chunks = chunks_of(document_id, title, texts)
        block = Block("paragraph", body, 0, len(body.encode()), 0, len(body))
        parsed = ParsedDocument(
            title, media_type, body, (block,), parser="test", metadata=metadata or {}
        )
        with self.pipeline() as conn:
            found = documents.ensure_scope(conn, scope, {})
            source = Source(SourceKind.API, f"api:{document_id}", f"api/{document_id}")
            documents.register(
                conn,
                documents.Registration(
                    found.scope_id, document_id, source, audiences=sorted(audiences)
                ),
            )
        row = self.row(document_id, scope)
        with self.pipeline() as conn:
            locks.lock(conn, row.document_key)
            versions.add(
                conn,
                row,
                digest=content_hash(body),
                media_type=media_type,
                size_bytes=len(body.encode()),
                name=document_id,
            )
        row = self.row(document_id, scope)
        with self.pipeline() as conn:
            versions.save_parsed(conn, row, parsed)
            versions.set_language(conn, row.version_key or 0, language, 1.0)
        row = self.row(document_id, scope)
        with self.pipeline() as conn:
            if verdict is not None:
                versions.record_verdict(conn, row, verdict, (), rule_pack="test", actor="test")
            staging.replace_chunks(conn, row, chunks)
        return self.row(document_id, scope), chunks

    def embed(self, row: DocumentRow, chunks: Sequence[Chunk]) -> int:
        """Stage vectors for the chunks that have none; returns how many were computed."""
        key = row.version_key or 0
        with self.pipeline() as conn:
            model = vectors.ensure_model(conn, self.embedder.model_id, DIM)
            missing = vectors.stage_known(conn, key, model)
            texts = {c.embed_hash: embedding_input(c.context, c.text) for c in chunks}
            if missing:
                made = self.embedder.embed([texts[item] for item in missing], "passage")
                vectors.stage_vectors(conn, key, model, missing, made)
        return len(missing)

    def put(
        self,
        row: DocumentRow,
        chunks: Sequence[Chunk],
        *,
        valid_from: datetime = START,
        audiences: Sequence[str] | None = None,
        with_vectors: bool = True,
        conn: Any = None,
    ) -> PutResult:
        lexical = []
        for chunk in chunks:
            found = analyze(chunk.text, row.language or "und", context=chunk.context)
            lexical.append(LexicalRow(chunk.ordinal, found.terms, found.length, ANALYZER_VERSION))
        with nullcontext(conn) if conn else self.pipeline() as used:
            return passages.put_version(
                used,
                row.version_key or 0,
                valid_from=valid_from,
                audiences=row.audiences if audiences is None else audiences,
                lexical=lexical,
                model_id=vectors.model_key(used, self.embedder.model_id) if with_vectors else None,
            )

    def publish(
        self,
        document_id: str,
        texts: Sequence[str],
        *,
        valid_from: datetime = START,
        with_vectors: bool = True,
        **values: Any,
    ) -> PutResult:
        """All steps in order."""
        row, chunks = self.stage(document_id, texts, **values)
        if with_vectors:
            self.embed(row, chunks)
        return self.put(row, chunks, valid_from=valid_from, with_vectors=with_vectors)

    def retriever(self, **values: Any) -> Retriever:
        return Retriever(self.database, embedder=lambda: self.embedder, **values)

    def search(self, query: str, *, audiences: Sequence[str] = (), **values: Any) -> SearchResult:
        if "scopes" not in values:
            values.setdefault("scope", self.scope)
        principal = values.pop("principal", Principal("test", frozenset(audiences)))
        return self.retriever().search(query, principal=principal, **values)

    def found(self, query: str, **values: Any) -> list[str]:
        """Document ids of the hits, best first."""
        return [hit.document_id for hit in self.search(query, **values).hits]


@pytest.fixture(scope="session")
def shared_database(server: EmbeddedServer, template_database: str) -> Iterator[Database]:
    """One database for the tests of this folder; each has a scope of its own in it."""
    name = "kb_search"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {template_database} strategy file_copy")
    with Database.embedded(server, dbname=name, application_name="kb search test") as opened:
        yield opened


@pytest.fixture
def world(shared_database: Database) -> World:
    """An empty scope."""
    return World(shared_database, f"scope{next(_numbers)}")
