"""Holding documents and bytes until a transaction ends, so that writers of them take turns.

Belongs here: locks, and what may only be asked under one. What does not: writing. Advisory locks
follow postgresql.org/docs, "13.3.5. Advisory Locks"; who takes several takes them in one order:
documents before bytes, each by their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb_resources.errors import ConflictError
from kb_resources.model import DocumentKey
from kb_resources.store import documents
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


def lock(conn: Conn, document_key: int) -> None:
    """Hold the document until the transaction ends; other writers of it wait."""
    lock_many(conn, [document_key])


def lock_many(conn: Conn, document_keys: Sequence[int]) -> None:
    """Hold documents, in the order of their keys."""
    conn.execute(sql("lock_documents"), {"document_keys": list(document_keys)})


def load_locked(conn: Conn, key: DocumentKey) -> DocumentRow:
    """One row as it stands under its lock, or NotFound."""
    lock(conn, documents.load_one(conn, key).document_key)
    return documents.load_one(conn, key)


def hold(conn: Conn, row: DocumentRow) -> None:
    """Lock the document for a row read earlier.

    Raises:
        ConflictError: the document has newer bytes meanwhile; the row is out of date.
    """
    for error in hold_many(conn, [row]).values():
        raise error


def hold_many(conn: Conn, rows: Sequence[DocumentRow]) -> dict[int, ConflictError]:
    """`hold` for several documents; the errors of those out of date, by document key."""
    keys = [row.document_key for row in rows]
    lock_many(conn, keys)
    newest = dict(conn.execute(sql("latest_versions"), {"document_keys": keys}).fetchall())
    return {
        row.document_key: changed(row)
        for row in rows
        if newest.get(row.document_key, -1) != row.latest_version
    }


def changed(row: DocumentRow) -> ConflictError:
    """The error for a document that is not what a stage looked at any more."""
    return ConflictError(
        f"{row.key} changed while a stage worked on it.",
        next_step="Nothing was written; the run for the newer bytes goes on.",
    )


def same_bytes(conn: Conn, digests: Mapping[int, str]) -> dict[int, tuple[int, str]]:
    """Key and id of the document that bytes are published under already for the same readers.

    Or about to be; see the statement. Hold the bytes (`lock_bytes`), so that two documents cannot
    both find nobody.

    Args:
        conn: inside a transaction.
        digests: of the bytes, by document key.
    """
    rows = conn.execute(
        sql("find_same_bytes"),
        {"document_keys": list(digests), "digests": list(digests.values())},
    ).fetchall()
    return {asking: (key, document_id) for asking, key, document_id in rows}


def lock_bytes(conn: Conn, held: Sequence[tuple[int, str]]) -> None:
    """Hold bytes, by scope's key and digest, until the transaction ends; who deletes them waits."""
    conn.execute(
        sql("lock_bytes"),
        {"scope_ids": [scope for scope, _ in held], "digests": [digest for _, digest in held]},
    )
