"""Both stores behind one fixture: in memory and Postgres, each open to all scopes or pinned to one.

Belongs here: making stores, small editions, vectors that mean something. What does not: the suite.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest

from kb_resources.model import Chunk, content_hash, passage_id
from kb_resources.model.chunk import embedding_input
from kb_resources.store.contract import KnowledgeStore
from kb_resources.store.memory import MemoryStore
from kb_resources.store.pool import Database
from kb_resources.store.postgres import PgStore
from kb_resources.store.records import Edition, Limits, Vector, VectorSpace
from kb_resources.store.server import EmbeddedServer

DIM = 8
SPACE = VectorSpace("tiny@1", DIM)
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LIMITS = Limits(chunks=100, vectors=64)
LEAVE = ("Leave is 30 days a year.", "Carry over ends in March.")
_names = itertools.count(1)


@dataclass
class Clock:
    """Moves a second with every look, and as far as a test says."""

    now: datetime = field(default_factory=lambda: START + 100 * DAY)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


def vector_of(text: str) -> Vector:
    """Words as directions: texts with equal words lie near each other."""
    row = np.full(DIM, 0.01, np.float32)
    for word in text.lower().split():
        row[int(content_hash(word)[:6], 16) % DIM] += 1
    return (row / np.linalg.norm(row)).astype(np.float32)


def edition(
    document_id: str,
    *texts: str,
    headings: Sequence[Sequence[str]] = (),
    vectors: bool | Sequence[int] = True,
    **values: Any,
) -> Edition:
    """A document of one chunk a text, under `headings` (default: its title)."""
    title = values.pop("title", document_id)
    paths = [tuple(path) for path in headings] or [(title,)] * len(texts)
    chunks: list[Chunk] = []
    seen: dict[tuple[tuple[str, ...], str], int] = {}
    at_byte = at_char = 0
    for ordinal, (text, path) in enumerate(zip(texts, paths, strict=True)):
        digest = content_hash(text)
        nth = seen[path, digest] = seen.get((path, digest), -1) + 1
        context = " > ".join(dict.fromkeys((title, *path)))
        size = len(text.encode())
        chunks.append(
            Chunk(
                ordinal,
                passage_id(document_id, path, digest, nth),
                text,
                context,
                path,
                None,
                None,
                at_byte,
                at_byte + size,
                at_char,
                at_char + len(text),
                digest,
                content_hash(embedding_input(context, text)),
                len(text.split()) + 2,
            )
        )
        at_byte, at_char = at_byte + size + 2, at_char + len(text) + 2
    body = "\n\n".join(texts)
    chosen = range(len(chunks)) if vectors is True else vectors or ()
    given: dict[str, Any] = {
        "digest": content_hash(body),
        "valid_from": START,
        "language": "en",
        "vectors": {chunks[i].embed_hash: embedded(chunks[i]) for i in chosen},
        **values,
    }
    return Edition(document_id, title, body, tuple(chunks), **given)


def embedded(chunk: Chunk) -> Vector:
    """The vector of a chunk with its context."""
    return vector_of(embedding_input(chunk.context, chunk.text))


@dataclass
class Kept:
    """A store under test, and what its calls have to name as their scope."""

    store: KnowledgeStore
    unpinned: KnowledgeStore
    name: str
    scope: str | None
    clock: Clock
    database: Database | None

    def put(self, *arguments: Any, **values: Any) -> Any:
        return self.store.put(edition(*arguments, **values), scope=self.scope)

    def found(self, text: str | None = None, **values: Any) -> list[str]:
        """Document ids, best first."""
        return [
            hit.passage.document_id
            for hit in self.store.search(text=text, scope=self.scope, **values)
        ]


@pytest.fixture(scope="session")
def contract_database(server: EmbeddedServer, template_database: str) -> Iterator[Database]:
    """One database for the suite; every test has scopes of its own in it."""
    name = "kb_contract"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {template_database} strategy file_copy")
    with Database.embedded(server, dbname=name, application_name="kb contract test") as opened:
        yield opened


MakeStore = Callable[[str], tuple[KnowledgeStore, Clock, Database | None]]


@pytest.fixture
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    """`make_store("memory")` or `make_store("postgres")`."""

    def make(kind: str) -> tuple[KnowledgeStore, Clock, Database | None]:
        clock = Clock()
        if kind == "memory":
            return MemoryStore(SPACE, limits=LIMITS, clock=clock), clock, None
        database: Database = request.getfixturevalue("contract_database")
        return PgStore(database, SPACE, limits=LIMITS, clock=clock), clock, database

    return make


@pytest.fixture(params=["memory-unscoped", "memory-scoped", "postgres-unscoped", "postgres-scoped"])
def kept(request: pytest.FixtureRequest, make_store: MakeStore) -> Kept:
    """An empty scope in each store: named by every call, or pinned."""
    kind, handle = request.param.split("-")
    store, clock, database = make_store(kind)
    name = f"s{next(_names)}"
    store.scopes.create(name)
    if handle == "unscoped":
        return Kept(store, store, name, name, clock, database)
    return Kept(store.pinned_to(name), store, name, None, clock, database)  # type: ignore[attr-defined]
