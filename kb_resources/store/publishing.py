"""One version into Postgres, in the caller's transaction: everything that must be together.

Belongs here: the order of the steps of a `put`. What does not: who may call it, and the stages of
the line, which take the same steps one transaction each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from kb_resources import lexical
from kb_resources.model import (
    Block,
    Chunk,
    DocumentKey,
    DocumentState,
    ParsedDocument,
    Source,
    SourceKind,
)
from kb_resources.store import documents, locks, passages, staging, vectors, versions
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.embed_work import WorkList
from kb_resources.store.records import Edition, Published, VectorSpace

ASIDE = 1_000
"""From this many chunks on, words are taken apart by a thread while the server compresses the body
and stages the chunks; fewer take less time than a thread is worth."""


def publish(
    conn: Conn, scope: str, scope_id: int, edition: Edition, space: VectorSpace, actor: str
) -> Published:
    """Publish an edition that was checked.

    Args:
        conn: inside a transaction of the pipeline role.
        scope: its name.
        scope_id: its id.
        edition: what `checks.check_edition` let pass.
        space: the model vectors are by.
        actor: for the document's log.

    Raises:
        PolicyError: the gate refuses, or the document was removed.
    """
    words = partial(lexical_rows, edition.chunks, edition.language)
    if len(edition.chunks) < ASIDE:
        return _publish(conn, scope, scope_id, edition, space, actor, words)
    with ThreadPoolExecutor(1, "kb-words") as aside:
        found = aside.submit(words)
        return _publish(conn, scope, scope_id, edition, space, actor, found.result)


def _publish(
    conn: Conn,
    scope: str,
    scope_id: int,
    edition: Edition,
    space: VectorSpace,
    actor: str,
    words: Callable[[], list[passages.LexicalRow]],
) -> Published:
    row = _registered(conn, scope, scope_id, edition)
    key, number, _ = versions.add(
        conn,
        row,
        digest=edition.digest,
        media_type=edition.media_type,
        size_bytes=len(edition.body.encode()),
        name=edition.document_id,
    )
    row = documents.load_one(conn, row.key)
    versions.save_parsed(conn, row, _parsed(edition))
    versions.set_language(conn, key, edition.language, 1.0)
    row = documents.load_one(conn, row.key)
    versions.record_verdict(
        conn, row, edition.verdict, (), rule_pack=edition.rule_pack, actor=actor
    )
    staging.replace_chunks(conn, row, edition.chunks)
    model = vectors.ensure_model(conn, space.model_id, space.dimensions)
    given = _given_vectors(conn, key, model, edition)
    put = passages.put_version(
        conn,
        key,
        valid_from=edition.valid_from,
        audiences=row.audiences,
        lexical=words(),
        model_id=model,
        partial=True,
        given=given,
    )
    versions.set_state(conn, key, DocumentState.INDEXED.value)
    documents.set_state(conn, row, DocumentState.INDEXED)
    if put.state != "unchanged":
        documents.append_lifecycle(conn, row, "indexed", actor=actor, version=number)
    WorkList(conn, scope_id, model).expect(
        row.document_key, put.waiting, anew=put.state != "unchanged"
    )
    return Published(number, put.state, put.passages, put.waiting)


def lexical_rows(chunks: Sequence[Chunk], language: str) -> list[passages.LexicalRow]:
    """What the analyzer makes of each chunk with its context."""
    rows = []
    for chunk in chunks:
        found = lexical.analyze(chunk.text, language, context=chunk.context)
        rows.append(
            passages.LexicalRow(chunk.ordinal, found.terms, found.length, lexical.ANALYZER_VERSION)
        )
    return rows


def _registered(conn: Conn, scope: str, scope_id: int, edition: Edition) -> DocumentRow:
    origin = edition.origin or edition.document_id
    source = Source(SourceKind.API, f"api:{origin}", origin)
    documents.register(
        conn,
        documents.Registration(scope_id, edition.document_id, source, audiences=edition.audiences),
    )
    return locks.load_locked(conn, DocumentKey(scope, edition.document_id))


def _parsed(edition: Edition) -> ParsedDocument:
    body = edition.body
    return ParsedDocument(
        title=edition.title,
        media_type=edition.media_type,
        body=body,
        blocks=edition.blocks or _blocks(edition),
        pages=edition.pages,
        raw_text=body,
        parser="caller",
        metadata=dict(edition.metadata),
    )


def _blocks(edition: Edition) -> tuple[Block, ...]:
    """Blocks of an edition that names none: its chunks' where they say where they stand."""
    body = edition.body
    if all(not c.locator and set(c.heading_path) <= {edition.title} for c in edition.chunks):
        return (Block("paragraph", body, 0, len(body.encode()), 0, len(body)),)
    return tuple(
        Block(
            "paragraph",
            chunk.text,
            chunk.byte_start,
            chunk.byte_end,
            chunk.char_start,
            chunk.char_end,
            page=chunk.page,
            heading_path=chunk.heading_path,
            locator=chunk.locator,
        )
        for chunk in edition.chunks
    )


def _given_vectors(
    conn: Conn, version_key: int, model: int, edition: Edition
) -> passages.GivenVectors | None:
    """Vectors of the edition that its scope does not have yet."""
    staged = vectors.carry_known(conn, version_key, model)
    chunks = [
        chunk
        for chunk in edition.chunks
        if chunk.embed_hash in edition.vectors and chunk.embed_hash not in staged
    ]
    if not chunks:
        return None
    rows = np.stack([edition.vectors[chunk.embed_hash] for chunk in chunks])
    return passages.GivenVectors(
        [chunk.ordinal for chunk in chunks], rows.astype(np.float32, copy=False)
    )
