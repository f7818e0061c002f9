"""What a reader may list: documents, their versions and events, inside row level security.

Belongs here: read-only queries of the ledger for the reading role. What does not: passages and
search (`passages`, `search`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.rows import dict_row

from kb_resources.errors import NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql


def documents(
    conn: Conn,
    scope: str,
    *,
    audiences: Sequence[str] | None,
    state: str | None = None,
    document_id: str | None = None,
    q: str | None = None,
    limit: int = 100,
    before: int | None = None,
) -> list[dict[str, Any]]:
    """Documents of a scope, newest first; `audiences` None shows all of them.

    `q` is a part of the title, the origin or the id, in any case.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            sql("list_documents"),
            {
                "scope": scope,
                "everyone": audiences is None,
                "audiences": list(audiences or ()),
                "state": state,
                "document_id": document_id,
                "q": q,
                "limit": limit,
                "before": before,
            },
        ).fetchall()


def document(conn: Conn, scope: str, document_id: str) -> dict[str, Any]:
    """One document with coverage, metadata, preview and events.

    Raises:
        NotFound: the scope does not show such a document.
    """
    rows = documents(conn, scope, audiences=None, document_id=document_id, limit=1)
    if not rows:
        raise NotFound(
            f"There is no document {document_id!r} in {scope!r}.",
            next_step="Look with kb documents list.",
        )
    found = rows[0]
    with conn.cursor(row_factory=dict_row) as cursor:
        given = {"scope": scope, "document_id": document_id}
        parsed = cursor.execute(sql("show_parsed"), given).fetchone() or {}
        found |= {name: parsed.get(name) for name in ("coverage", "metadata", "preview")}
        found["lifecycle"] = cursor.execute(sql("document_lifecycle"), given).fetchall()
    return found


def history(conn: Conn, scope: str, document_id: str) -> list[dict[str, Any]]:
    """Versions of a document, oldest first, each with the intervals in which it holds."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            sql("document_history"), {"scope": scope, "document_id": document_id}
        ).fetchall()
    if not rows and not documents(conn, scope, audiences=None, document_id=document_id, limit=1):
        raise NotFound(
            f"There is no document {document_id!r} in {scope!r}.",
            next_step="Look with kb documents list.",
        )
    return rows
