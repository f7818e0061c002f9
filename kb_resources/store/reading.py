"""Rows for reading one document: a passage in its place, a version's body, a passage's making.

Belongs here: read-only queries for the reading role, by scope and audiences as in a search. What
does not: shaping them (`retrieve.context`, `retrieve.outline`, `retrieve.explain`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

Row = dict[str, Any]


def _reader(audiences: Sequence[str] | None) -> Row:
    return {"everyone": audiences is None, "audiences": list(audiences or ())}


def context(
    conn: Conn,
    scope: str,
    passage_id: str,
    *,
    audiences: Sequence[str] | None,
    version: int | None,
    before: int,
    after: int,
) -> list[Row]:
    """A passage's row between its neighbours', in reading order; empty where none shows."""
    given = {"scope": scope, "passage_id": passage_id, "version": version, **_reader(audiences)}
    return rows(conn, "passage_context", {**given, "before": before, "after": after})


def version(
    conn: Conn,
    scope: str,
    document_id: str,
    *,
    audiences: Sequence[str] | None,
    version: int | None,
) -> Row | None:
    """A cleared version with body, blocks and pages; None where the reader sees none."""
    given = {"scope": scope, "document_id": document_id, "version": version, **_reader(audiences)}
    found = rows(conn, "readable_version", given)
    return found[0] if found else None


def passages(conn: Conn, version_key: int) -> list[Row]:
    """Where the passages of a version stand, in reading order."""
    return rows(conn, "version_passages", {"version_key": version_key})


def making(
    conn: Conn,
    scope: str,
    passage_id: str,
    *,
    audiences: Sequence[str] | None,
    version: int | None,
) -> Row | None:
    """All that is stored about one passage, its vectors under `vectors`; None where none shows."""
    given = {"scope": scope, "passage_id": passage_id, "version": version, **_reader(audiences)}
    found = rows(conn, "explain_passage", given)
    if not found:
        return None
    key = {"passage_key": found[0].pop("passage_key")}
    return found[0] | {"vectors": rows(conn, "explain_vectors", key)}


def frequencies(conn: Conn, scope: str, lexemes: Iterable[int]) -> dict[int, int]:
    """Document frequencies of lexemes as last counted; those not counted yet are left out."""
    given = {"scope": scope, "lexemes": list(lexemes)}
    return dict(conn.execute(sql("lexeme_frequencies"), given).fetchall())
