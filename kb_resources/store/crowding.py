"""Passages that came lately, and older ones to make questions of.

Belongs here: the statements of `queries/crowding.sql`. What does not: asking and judging
(`stages.crowding`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from kb_resources.store.documents import Conn
from kb_resources.store.generations import SampledPassage
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A passage found now whose text its document did not hold before."""

    document_id: str
    passage_id: str
    origin: str


def canaries(
    conn: Conn, scope_id: int, *, since: datetime, now: datetime, size: int
) -> Sequence[SampledPassage]:
    """Passages that were there before, the same ones as long as the scope does not change."""
    with conn.cursor(row_factory=class_row(SampledPassage)) as cursor:
        given = {"scope_id": scope_id, "since": since, "now": now, "size": size}
        return cursor.execute(sql("canary_passages"), given).fetchall()


def new_passages(
    conn: Conn, scope_id: int, *, since: datetime, now: datetime
) -> Sequence[NewPassage]:
    """Passages that came since."""
    with conn.cursor(row_factory=class_row(NewPassage)) as cursor:
        given = {"scope_id": scope_id, "since": since, "now": now}
        return cursor.execute(sql("new_passages"), given).fetchall()


def found_passages(conn: Conn, scope_id: int, *, now: datetime) -> int:
    """How many passages of the scope are found now."""
    row = conn.execute(sql("found_passages"), {"scope_id": scope_id, "now": now}).fetchone()
    return int(row[0]) if row else 0
