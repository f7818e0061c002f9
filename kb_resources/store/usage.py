"""Rows of `kb.usage`: what the steps of runs took, and which documents wait for a person.

Belongs here: reading and writing in the caller's transaction. What does not: measuring (who runs
the stages) and prices (`stages.usage`). Units as in
https://opentelemetry.io/docs/specs/semconv/gen-ai/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from kb_resources.model import DocumentState
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one step of a run took in one scope.

    Attributes:
        scope: its name.
        run_id: the run.
        cause: why it ran, a word of ours.
        stage: the step.
        documents: worked on.
        cpu_s: computing time.
        model: what the tokens are of; None for the row with the computing time.
        tokens: that went to it.
        money: by the price known now; None without one.
        currency: of it.
    """

    scope: str
    run_id: str
    cause: str
    stage: str
    documents: int = 0
    cpu_s: float = 0.0
    model: str | None = None
    tokens: int = 0
    money: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class InNeed:
    """A document that a person has to look at.

    Attributes:
        version: its newest, None before anything was read.
        digest: of its bytes, SHA-256 hex.
        updated_at: when it came to this state, aware.
    """

    scope: str
    document_id: str
    state: str
    reason: str
    updated_at: datetime
    version: int | None
    digest: str | None


def record(conn: Conn, found: Sequence[UsageRow]) -> None:
    """Write rows; those of a scope that is gone by now are left out."""
    with conn.cursor() as cursor:
        cursor.executemany(sql("record_usage"), [asdict(row) for row in found])


def of_run(conn: Conn, run_id: str) -> dict[str, Any]:
    """`documents`, `cpu_s`, `tokens`, `money` by currency, `unpriced` of one run."""
    return rows(conn, "usage_of_run", {"run_id": run_id})[0]


def since(conn: Conn, instant: datetime) -> list[dict[str, Any]]:
    """By day (UTC), scope and model since an aware instant, the newest first."""
    return rows(conn, "usage_since", {"since": instant})


def in_need(conn: Conn, states: Sequence[DocumentState], limit: int) -> list[InNeed]:
    """Documents of open scopes in one of the states, in the order of these, then the newest."""
    with conn.cursor(row_factory=class_row(InNeed)) as cursor:
        given = {"states": [state.value for state in states], "limit": limit}
        return cursor.execute(sql("documents_in_need"), given).fetchall()
