"""Decisions about documents: removal, restoring, audiences; and the log that proves them.

Belongs here: calls of the functions of migration 0007 inside the caller's transaction. What does
not: erasing (`erasure`), and who may decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from kb_resources.model import DocumentKey, DocumentState
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


def remove(conn: Conn, row: DocumentRow, at: datetime, reason: str) -> int | None:
    """Take the document out of search from `at` on; its history stays.

    Returns:
        Intervals that ended; None where the document was removed already.

    Raises:
        PolicyError: the document was erased.
    """
    found = conn.execute(
        sql("remove_document"), {"document_key": row.document_key, "at": at, "reason": reason}
    ).fetchone()
    return found[0] if found else None


def restore(conn: Conn, row: DocumentRow, at: datetime) -> DocumentState | None:
    """Bring a removed document back from `at` on.

    Returns:
        Its state now: `indexed` where search finds it at once, `pending` where the line has to
        take it up; None where it was not removed.
    """
    found = conn.execute(
        sql("restore_document"), {"document_key": row.document_key, "at": at}
    ).fetchone()
    return DocumentState(found[0]) if found and found[0] else None


def decide_audiences(
    conn: Conn, row: DocumentRow, audiences: Sequence[str], *, actor: str
) -> list[str]:
    """Set who may read the document, for all its versions, against whatever its source says.

    Returns:
        The audiences until now.
    """
    found = conn.execute(
        sql("decide_audiences"),
        {"document_key": row.document_key, "audiences": sorted(set(audiences)), "actor": actor},
    ).fetchone()
    return list(found[0]) if found else []


def follow_source(conn: Conn, row: DocumentRow) -> bool:
    """Let the source say the audiences again; False where it does already."""
    return conn.execute(sql("follow_source"), {"document_key": row.document_key}).rowcount > 0


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """A place where a chain does not hold.

    Attributes:
        scope: scope name; None where the document's row is gone.
        document_id: the document, or None.
        lifecycle_id: number of the entry, or None where the chain has no entry left.
        problem: `changed`, `gap before` or `cut off after`.
    """

    scope: str | None
    document_id: str | None
    lifecycle_id: int | None
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What walking the hash chains found."""

    entries: int
    documents: int
    broken: tuple[BrokenEntry, ...]


def verify(
    conn: Conn, *, scope_id: int | None = None, document_key: int | None = None
) -> Verification:
    """Compute every hash of the log again, of one document, one scope, or all."""
    given = {"scope_id": scope_id, "document_key": document_key}
    with conn.cursor(row_factory=class_row(BrokenEntry)) as cursor:
        broken = cursor.execute(sql("verify_lifecycle"), given).fetchall()
    size = conn.execute(sql("lifecycle_size"), given).fetchone() or (0, 0)
    return Verification(int(size[0]), int(size[1]), tuple(broken))


@dataclass(frozen=True, slots=True)
class Interval:
    """A version held in `[valid_from, valid_until)`, as known in `[known_from, known_until)`.

    Times are aware; None is open.
    """

    version: int
    valid_from: datetime | None
    valid_until: datetime | None
    known_from: datetime | None
    known_until: datetime | None


def intervals(
    conn: Conn,
    scope: str,
    document_id: str,
    *,
    known_at: datetime | None = None,
    valid_at: datetime | None = None,
    audiences: Sequence[str] | None = None,
) -> list[Interval]:
    """When each version of a document held, as it was known at an instant.

    Args:
        conn: inside a transaction of the reading role.
        scope: scope name.
        document_id: the document.
        known_at: only what was known then; None: everything that was ever known.
        valid_at: only what held then.
        audiences: names the reader holds; None shows all.
    """
    with conn.cursor(row_factory=class_row(Interval)) as cursor:
        return cursor.execute(
            sql("document_intervals"),
            {
                "scope": scope,
                "document_id": document_id,
                "known_at": known_at,
                "valid_at": valid_at,
                "everyone": audiences is None,
                "audiences": list(audiences or ()),
            },
        ).fetchall()


def of_source(conn: Conn, scope: str, source: str) -> list[DocumentKey]:
    """Documents that came from a source or from below it and are not gone; a trailing / is none."""
    rows = conn.execute(
        sql("documents_of_source"), {"scope": scope, "source": source.rstrip("/")}
    ).fetchall()
    return [DocumentKey(scope, str(row[0])) for row in rows]
