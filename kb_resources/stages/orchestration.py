"""What an orchestrator asks the ledger beside running stages.

Belongs here: read-only questions about documents waiting, models, vectors and statistics, for
sensors, schedules and checks. What does not: deciding what to launch (`kb_assets`).
The batch table works as an outbox, https://microservices.io/patterns/data/transactional-outbox.html.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row, dict_row

from kb_resources.errors import NotFound
from kb_resources.model import AnyStage, DocumentKey, DocumentState, Stage, StageReport
from kb_resources.stages import common, facts
from kb_resources.stages.line import Line
from kb_resources.store import ann, documents, generations, passages, staging
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending document.

    Attributes:
        scope: scope name.
        document_id: the document.
        since: when its row last changed, aware.
        batch_id: newest batch that names it, or None.
        cause: why that batch was made.
        created_at: when.
    """

    scope: str
    document_id: str
    since: datetime
    batch_id: str | None
    cause: str | None
    created_at: datetime | None

    @property
    def key(self) -> DocumentKey:
        """The partition."""
        return DocumentKey(self.scope, self.document_id)


def waiting_documents(
    line: Line, *, older_than_s: float, max_tries: int, limit: int
) -> list[Waiting]:
    """Documents pending for so many seconds and tried less often than that, oldest first."""
    given = {"older_than_s": older_than_s, "max_tries": max_tries, "limit": limit}
    with (
        line.capabilities.database.transaction("pipeline") as conn,
        conn.cursor(row_factory=class_row(Waiting)) as cursor,
    ):
        return cursor.execute(sql("waiting_documents"), given).fetchall()


def embedded_otherwise(line: Line, limit: int) -> list[DocumentKey]:
    """Indexed documents that lack vectors of a shadow, or of their live model, scope by scope."""
    with line.capabilities.database.transaction("pipeline") as conn:
        found = generations.to_backfill(conn, limit)
    return [DocumentKey(scope, document_id) for scope, document_id in found]


def standing(line: Line, stage: AnyStage, keys: Sequence[DocumentKey]) -> list[StageReport]:
    """What `stage` did for those of `keys` that are published and that nothing acts on now."""
    started, versions = time.perf_counter(), line.capabilities.versions
    with line.capabilities.database.transaction("pipeline") as conn:
        rows = [
            row
            for row in documents.load(conn, keys)
            if row.version_key is not None
            and row.state == DocumentState.INDEXED
            and row.settled_fingerprint == versions.settled(row, row.digest or "")
        ]
        results = staging.results(conn, [row.version_key or 0 for row in rows], stage)
    known = ((row, results.get((row.version_key or 0, stage))) for row in rows)
    return [common.unchanged(stage, row, done, started) for row, done in known if done is not None]


def facts_of(
    line: Line, stage: AnyStage, keys: Sequence[DocumentKey]
) -> dict[DocumentKey, dict[str, Any]]:
    """`Line.facts` of many documents in one transaction; erased ones are absent.

    At embed, `vectors` says how the version is embedded: `missing`, `doubled`, `models`,
    `worst_norm_error`.
    """
    with line.capabilities.database.transaction("pipeline") as conn:
        rows = documents.load(conn, keys)
        found = {row.key: facts.at(conn, stage, row) for row in rows}
        if stage is Stage.EMBED:
            with conn.cursor(row_factory=dict_row) as cursor:
                for row in rows:
                    given = {"version_key": row.version_key}
                    counted = cursor.execute(sql("version_vectors"), given).fetchone()
                    found[row.key]["vectors"] = counted
    return found


def scopes(line: Line) -> list[str]:
    """Names of the open scopes."""
    with line.capabilities.database.transaction("pipeline") as conn:
        return [row["name"] for row in documents.list_scopes(conn) if row["closed_at"] is None]


def has_opaque_ids(line: Line, scope: str) -> bool:
    """Whether the scope's derived document ids leave names out; False for a scope not yet made."""
    with line.capabilities.database.transaction("pipeline") as conn:
        try:
            return bool(documents.get_scope(conn, scope).settings.get("opaque_ids"))
        except NotFound:
            return False


@dataclass(frozen=True, slots=True)
class ScopeSums:
    """Numbers of one scope that have to add up.

    Attributes:
        scope: name.
        documents: known documents.
        states: how many are in each state.
        indexed_without_version: indexed documents that do not have exactly one current version.
        current_passages: passages valid now.
        passages_adrift: of these, those whose version is not valid now.
        backlog_age_s: seconds since the oldest pending document changed, 0 without backlog.
    """

    scope: str
    documents: int
    states: dict[str, int]
    indexed_without_version: int
    current_passages: int
    passages_adrift: int
    backlog_age_s: float


def scope_sums(line: Line) -> list[ScopeSums]:
    """Sums of every open scope, by name."""
    with (
        line.capabilities.database.transaction("pipeline") as conn,
        conn.cursor(row_factory=class_row(ScopeSums)) as cursor,
    ):
        return cursor.execute(sql("scope_sums")).fetchall()


def refresh_statistics(line: Line) -> list[dict[str, Any]]:
    """Count the terms of every scope that grew or shrank; returns all statistics, by scope."""
    for name in scopes(line):
        with line.capabilities.database.transaction("pipeline") as conn:
            passages.refresh_if_due(conn, documents.get_scope(conn, name).scope_id)
    with (
        line.capabilities.database.transaction("pipeline") as conn,
        conn.cursor(row_factory=dict_row) as cursor,
    ):
        return cursor.execute(sql("lexicons")).fetchall()


def maintain_indexes(line: Line) -> list[ann.IndexChange]:
    """Make, rebuild and drop the vector indexes of large scopes; returns what was changed.

    Raises:
        PolicyError: this process does not hold the owner's connection.
    """
    with line.capabilities.database.session("owner") as conn:
        return ann.maintain(conn)
