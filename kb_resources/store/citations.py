"""Kept citations and the texts they are checked against, in the caller's transaction.

Belongs here: their rows. What does not: deciding whether a quote still stands (`answer.citing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from kb_resources.errors import NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

Row = dict[str, Any]


def keep(conn: Conn, row: Mapping[str, Any]) -> None:
    """Add a citation; NotFound where its document does not show."""
    if conn.execute(sql("keep_citation"), {**row, "place": _json(row["place"])}).fetchone() is None:
        raise NotFound(
            f"There is no document {row['document_id']!r} in {row['scope']!r}.",
            next_step="Look with kb documents list.",
        )


def kept(
    conn: Conn,
    scope: str,
    *,
    audiences: Sequence[str] | None,
    holder: str | None = None,
    document_id: str | None = None,
    status: str | None = None,
    citation_id: str | None = None,
    after: str | None = None,
    limit: int = 1000,
) -> list[Row]:
    """Citations of a scope, oldest first; `audiences` None shows those of every document."""
    given = {
        "scope": scope,
        "everyone": audiences is None,
        "audiences": list(audiences or ()),
        "holder": holder,
        "document_id": document_id,
        "status": status,
        "citation_id": citation_id,
        "after": after,
        "limit": limit,
    }
    return rows(conn, "kept_citations", given)


def due(conn: Conn, scope: str | None, *, limit: int) -> list[Row]:
    """Citations whose document changed since their last check, by document."""
    return rows(conn, "due_citations", {"scope": scope, "limit": limit})


def text_now(conn: Conn, scope: str, document_id: str) -> Row | None:
    """What a document says now; None where nothing of it holds."""
    found = rows(conn, "text_now", {"scope": scope, "document_id": document_id})
    return found[0] if found else None


def text_of_version(conn: Conn, scope: str, document_id: str, version: int) -> Row | None:
    """What a version says; None where it is not to be read."""
    given = {"scope": scope, "document_id": document_id, "version": version}
    found = rows(conn, "text_of_version", given)
    return found[0] if found else None


def record_check(conn: Conn, row: Mapping[str, Any]) -> None:
    """Store the outcome of a check."""
    conn.execute(sql("record_check"), {**row, "place": _json(row["place"])})


def drop(conn: Conn, scope: str, citation_id: str) -> bool:
    """Delete a citation; whether there was one."""
    given = {"scope": scope, "citation_id": citation_id}
    return conn.execute(sql("drop_citation"), given).fetchone() is not None


def counts(conn: Conn, scope: str | None) -> dict[str, int]:
    """Citations by status."""
    return dict(conn.execute(sql("count_citations"), {"scope": scope}).fetchall())


def _json(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(value)
