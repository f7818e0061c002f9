"""Lists of documents and versions: batches, and those that a state or another's end concerns.

Belongs here: which documents, by key. What does not: a document's own row (`documents`). A batch is
the list that one Dagster run works through, see https://docs.dagster.io/guides/build/jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.rows import class_row

from kb_resources.model import DocumentKey, DocumentState
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


def new_batch(
    conn: Conn, batch_id: str, keys: Sequence[DocumentKey], *, actor: str, cause: str
) -> None:
    """Store a list of documents under an id."""
    conn.execute(sql("new_batch"), {"batch_id": batch_id, "actor": actor, "cause": cause})
    conn.execute(
        sql("add_batch_items"),
        {
            "batch_id": batch_id,
            "scopes": [k.scope for k in keys],
            "documents": [k.document_id for k in keys],
        },
    )


def batch_keys(conn: Conn, batch_id: str) -> list[DocumentKey]:
    """The documents of a batch; empty for an unknown one."""
    rows = conn.execute(sql("batch_documents"), {"batch_id": batch_id}).fetchall()
    return [DocumentKey(scope, document_id) for scope, document_id in rows]


def select_keys(
    conn: Conn, scope: str, states: Sequence[DocumentState], limit: int
) -> list[DocumentKey]:
    """Documents of a scope in one of the states, oldest first."""
    rows = conn.execute(
        sql("select_documents"),
        {"scope": scope, "states": [state.value for state in states], "limit": limit},
    ).fetchall()
    return [DocumentKey(scope, document_id) for scope, document_id in rows]


def scanned_otherwise(conn: Conn, scope: str, rule_pack: str, limit: int) -> list[DocumentKey]:
    """Documents whose newest version holds texts and a verdict of another rule pack."""
    rows = conn.execute(
        sql("scanned_otherwise"), {"scope": scope, "rule_pack": rule_pack, "limit": limit}
    ).fetchall()
    return [DocumentKey(name, document_id) for name, document_id in rows]


def repeating(conn: Conn, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
    """Documents that are duplicates of one of `keys`."""
    return _named(conn, "repeating_documents", keys)


def woken(conn: Conn, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
    """Those of `keys` that were duplicates, or never read, and are pending."""
    return _named(conn, "woken_documents", keys)


def _named(conn: Conn, statement: str, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
    given = {"scopes": [k.scope for k in keys], "documents": [k.document_id for k in keys]}
    return [DocumentKey(*found) for found in conn.execute(sql(statement), given).fetchall()]


@dataclass(frozen=True, slots=True)
class CurrentVersion:
    """A document's version that is valid now."""

    document_key: int
    document_id: str
    version_key: int
    version: int


def current_of(conn: Conn, scope_id: int, document_ids: Sequence[str]) -> list[CurrentVersion]:
    """The current versions of the named documents of a scope."""
    with conn.cursor(row_factory=class_row(CurrentVersion)) as cursor:
        return cursor.execute(
            sql("current_versions"), {"scope_id": scope_id, "documents": list(document_ids)}
        ).fetchall()


def versions_ended_by(conn: Conn, rows: Sequence[DocumentRow]) -> dict[int, list[int]]:
    """Numbers of the documents' versions that ended when the newest began, by its version key."""
    found: dict[int, list[int]] = {}
    given = {
        "document_keys": [row.document_key for row in rows],
        "version_keys": [row.version_key for row in rows],
    }
    for key, number in conn.execute(sql("ended_by"), given).fetchall():
        found.setdefault(key, []).append(number)
    return found
