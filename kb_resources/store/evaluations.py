"""Evaluation runs and scratch scopes: rows in, rows out, in the caller's transaction.

Belongs here: SQL of both. What does not: judging (`evaluate`), filling a scratch scope (`stages`).
A scratch scope is dropped by one function of the owner's, which refuses any other scope.
Advisory locks: postgresql.org/docs, "13.3.5. Advisory Locks".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from kb_resources.errors import InputError, NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

Row = dict[str, Any]


def add(conn: Conn, run: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> None:
    """Store a run and a row per question; `scope` None: of a set loaded for the run alone."""
    conn.execute(
        sql("add_evaluation"),
        {**run, "config": Jsonb(run["config"]), "figures": Jsonb(run["figures"])},
    )
    given = [{"nth": nth, **question} for nth, question in enumerate(questions, 1)]
    conn.execute(
        sql("add_evaluation_questions"),
        {"run_id": run["run_id"], "scope": run["scope"], "questions": Jsonb(given)},
    )


def get(conn: Conn, run_id: str) -> Row:
    """A run by its id or enough first digits of it.

    Raises:
        NotFound: none begins so, for this connection.
        InputError: several do.
    """
    found = rows(conn, "evaluation_by_id", {"run_id": run_id}) if run_id else []
    if not found:
        raise NotFound(
            f"There is no evaluation {run_id!r}.", next_step="List them with kb eval list."
        )
    if len(found) > 1:
        raise InputError(
            f"{run_id!r} begins more than one evaluation.", next_step="Write more of its id."
        )
    return found[0]


def recent(
    conn: Conn,
    scope: str | None,
    *,
    name: str | None = None,
    accepted: bool | None = None,
    whole: bool = False,
    before: datetime | None = None,
    limit: int = 50,
) -> list[Row]:
    """Runs, newest first (accepted ones: last accepted first).

    Args:
        conn: of any role; the reading role sees those of its scopes.
        scope: of which scope; None: of sets loaded for the run alone.
        name: only of this question file.
        accepted: only accepted ones, or only others.
        whole: only runs over both halves.
        before: only older ones.
        limit: at most.
    """
    given = {
        "scope": scope,
        "name": name,
        "accepted": accepted,
        "whole": whole,
        "before": before,
        "limit": limit,
    }
    return rows(conn, "evaluations", given)


def questions(conn: Conn, run_id: str) -> list[Row]:
    """The questions of a run, in the file's order."""
    return rows(conn, "evaluation_questions", {"run_id": run_id})


def accept(conn: Conn, run_id: str, actor: str) -> None:
    """Take a run as what later ones are held against."""
    conn.execute(sql("accept_evaluation"), {"run_id": run_id, "actor": actor})


def labelled(conn: Conn, scope: str, names: Sequence[str]) -> list[Row]:
    """What is found now of the documents that labels name, with sizes and heading paths."""
    return rows(conn, "labelled_documents", {"scope": scope, "names": list(names)})


def hold_scratch(conn: Conn, name: str) -> bool:
    """Hold a scratch scope's name until the transaction ends; False: somebody else does."""
    row = conn.execute(sql("hold_scratch"), {"name": name}).fetchone()
    return bool(row and row[0])


def make_scratch(conn: Conn, name: str, actor: str) -> int:
    """Make a scratch scope; returns its id."""
    row = conn.execute(sql("make_scratch"), {"name": name, "actor": actor}).fetchone()
    return int(row[0]) if row else 0


def drop_scratch(conn: Conn, scope_id: int) -> int:
    """Drop a scratch scope with all in it; returns its documents.

    Raises:
        PolicyError: it was not made as one.
    """
    row = conn.execute(sql("drop_scratch"), {"scope_id": scope_id}).fetchone()
    return int(row[0]) if row else 0


def scratch_scopes(conn: Conn) -> list[tuple[int, str]]:
    """Id and name of every scratch scope there is."""
    return [(row[0], row[1]) for row in conn.execute(sql("scratch_scopes")).fetchall()]
