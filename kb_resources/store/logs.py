"""The retrieval, disclosure and answer logs: rows in, rows out, in the caller's transaction.

Belongs here: SQL of the logs and of content classes. What does not: deciding what may be sent
(`answer.disclosure`), making the rows (`retrieve.log`, `answer.record`). A log that cannot be
written raises, and the transaction it speaks of ends with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from kb_resources.errors import NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

Row = dict[str, Any]


def add_retrieval(conn: Conn, row: Mapping[str, Any]) -> None:
    """Append one search."""
    given = {
        name: None if row[name] is None else Jsonb(row[name])
        for name in ("filters", "options", "hits")
    }
    conn.execute(sql("add_retrieval"), {**row, **given})


def add_disclosure(conn: Conn, row: Mapping[str, Any]) -> None:
    """Append one decision about text that was to leave for a model."""
    conn.execute(sql("add_disclosure"), {**row, "parts": Jsonb(row["parts"])})


def add_answer(conn: Conn, row: Mapping[str, Any]) -> None:
    """Append one answer."""
    given = {name: Jsonb(row[name]) for name in ("statements", "rejected")}
    conn.execute(sql("add_answer"), {**row, **given})


def retrievals(conn: Conn, correlation_id: str) -> list[Row]:
    """Searches under a correlation id, oldest first."""
    return rows(conn, "logged_retrievals", {"correlation_id": correlation_id})


def disclosures(conn: Conn, correlation_id: str) -> list[Row]:
    """Disclosures under a correlation id, oldest first."""
    return rows(conn, "logged_disclosures", {"correlation_id": correlation_id})


def answers(conn: Conn, correlation_id: str) -> list[Row]:
    """Answers under a correlation id, oldest first."""
    return rows(conn, "logged_answers", {"correlation_id": correlation_id})


def recent(conn: Conn, *, limit: int, before: datetime | None) -> list[Row]:
    """Newest searches that the connection's scopes show."""
    return rows(conn, "recent_retrievals", {"limit": limit, "before": before})


def usage(conn: Conn, scope: str, since: datetime) -> list[Row]:
    """Answers, calls and tokens of a scope by day and answerer."""
    return rows(conn, "usage", {"scope": scope, "since": since})


def ensure_partitions(conn: Conn, since: datetime, months: int) -> int:
    """Make the logs' monthly partitions from an instant on; returns how many were missing."""
    row = conn.execute(sql("ensure_log_partitions"), {"since": since, "months": months}).fetchone()
    return int(row[0]) if row else 0


def drop_partitions(conn: Conn, before: datetime) -> int:
    """Drop the months that ended before an instant; returns how many tables went."""
    row = conn.execute(sql("drop_log_partitions"), {"before": before}).fetchone()
    return int(row[0]) if row else 0


def traced_passages(conn: Conn, places: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What stands behind passages named by scope, document, version and passage id."""
    return rows(conn, "traced_passages", {"places": Jsonb([dict(place) for place in places])})


def documents_since(conn: Conn, places: Sequence[Mapping[str, Any]], since: datetime) -> list[Row]:
    """Where documents stand, and their lifecycle events since an instant."""
    given = {"places": Jsonb([dict(place) for place in places]), "since": since}
    return rows(conn, "documents_since", given)


def content_classes(
    conn: Conn, scopes: Sequence[str], documents: Collection[str]
) -> dict[tuple[str, str], str]:
    """Content class by scope and document id."""
    rows = conn.execute(
        sql("content_classes"), {"scopes": list(scopes), "documents": list(documents)}
    ).fetchall()
    return {(row[0], row[1]): row[2] for row in rows}


def scope_classes(conn: Conn, scopes: Sequence[str]) -> dict[str, str]:
    """Content class by scope: what its questions and unclassed documents have."""
    return dict(conn.execute(sql("scope_classes"), {"scopes": list(scopes)}).fetchall())


def set_content_class(
    conn: Conn, scope: str, document_id: str | None, content_class: str | None
) -> None:
    """Say how far a document, or a scope's questions and other documents, may travel.

    Raises:
        NotFound: no such scope or document.
    """
    given = {"scope": scope, "document_id": document_id, "content_class": content_class}
    name = "set_scope_class" if document_id is None else "set_document_class"
    if conn.execute(sql(name), given).fetchone() is None:
        what = f"scope {scope!r}" if document_id is None else f"document {document_id!r} there"
        raise NotFound(f"There is no {what}.", next_step="Look with kb documents list.")
