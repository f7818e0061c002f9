"""The line: the stages in order, over one document or a batch, free of Dagster.

Belongs here: who is in line for which stage, and that one document's error stops no other. What
does not: what a stage does. A service that is away stops the line; a broken document does not.
"""

from __future__ import annotations

import contextlib
import importlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from kb_resources.errors import ConflictError, KbError, PolicyError, UnavailableError
from kb_resources.model import (
    ORDER,
    AnyStage,
    DocumentKey,
    DocumentState,
    ModelStage,
    Stage,
    StageReport,
)
from kb_resources.stages import common, facts, group, health
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.request import IngestRequest, register, register_all
from kb_resources.store import documents, locks, selections, staging
from kb_resources.store.documents import DocumentRow

_IN_PROGRESS = (DocumentState.PENDING, DocumentState.INDEXED)

StageOutcome = StageReport | Exception
_Run = Callable[
    [Capabilities, Sequence[DocumentRow], Callable[[], bool]],
    Iterator[tuple[DocumentRow, StageOutcome]],
]


def _never() -> bool:
    return False


def _runner(stage: AnyStage) -> _Run:
    """What runs a stage; its module is imported with the first document that comes to it."""
    module = importlib.import_module(f"kb_resources.stages.{stage.value}")
    if isinstance(stage, ModelStage):
        # What a model wrote goes through the scan before it goes on.
        judged = {"judge": _judge} if stage is ModelStage.CONVERT else {}
        return partial(_each, partial(module.run, **judged))
    if stage in (Stage.ACQUIRE, Stage.EMBED):
        return cast("_Run", module.run_many)
    return partial(group.run, module.STEP)


def _judge(caps: Capabilities, row: DocumentRow) -> StageReport:
    from kb_resources.stages import scan

    return group.run_one(scan.STEP, caps, row)


def _each(
    run: Callable[[Capabilities, DocumentRow], StageReport],
    caps: Capabilities,
    rows: Sequence[DocumentRow],
    should_stop: Callable[[], bool],
) -> Iterator[tuple[DocumentRow, StageOutcome]]:
    """A model is asked about one document at a time."""
    for row in rows:
        if should_stop():
            return
        try:
            yield row, run(caps, row)
        except UnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - one document's error stops no other
            yield row, error


@dataclass(frozen=True, slots=True)
class Line:
    """The ingestion line over one set of capabilities.

    Attributes:
        capabilities: what the stages call.
        languages: languages that a scope made by `register` accepts.
    """

    capabilities: Capabilities
    languages: tuple[str, ...]

    @property
    def order(self) -> tuple[AnyStage, ...]:
        """Its stages: the eight, and those that ask a model where they are on."""
        on = self.capabilities.asking
        return tuple(stage for stage in ORDER if not isinstance(stage, ModelStage) or stage in on)

    def register(self, request: IngestRequest) -> DocumentKey:
        """Write a request into the ledger; see `request.register`."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return register(conn, request, self.languages)

    def register_many(self, requests: Sequence[IngestRequest]) -> list[DocumentKey]:
        """Write several requests in one transaction: all of them or none."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return register_all(conn, requests, self.languages)

    def rows(self, keys: Sequence[DocumentKey]) -> list[DocumentRow]:
        """Where the documents stand now."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return documents.load(conn, keys)

    def with_work(self, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
        """Those of `keys` that a run would do anything for; see `acquire.has_work`."""
        from kb_resources.stages import acquire

        return [row.key for row in self.rows(keys) if acquire.has_work(self.capabilities, row)]

    def new_batch(self, keys: Sequence[DocumentKey], *, actor: str, cause: str) -> str:
        """Store a list of documents for one run; returns its id."""
        batch_id = secrets.token_hex(8)
        with self.capabilities.database.transaction("pipeline") as conn:
            selections.new_batch(conn, batch_id, keys, actor=actor, cause=cause)
        return batch_id

    def batch(self, batch_id: str) -> list[DocumentKey]:
        """The documents of a batch."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return selections.batch_keys(conn, batch_id)

    def select(
        self, scope: str, states: Sequence[DocumentState], limit: int = 1000
    ) -> list[DocumentKey]:
        """Documents of a scope in one of the states, oldest first."""
        with self.capabilities.database.transaction("pipeline") as conn:
            documents.get_scope(conn, scope)
            return selections.select_keys(conn, scope, states, limit)

    def repeating(self, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
        """Documents that are duplicates of one of `keys` now."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return selections.repeating(conn, keys)

    def woken(self, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
        """Those of `keys` that wait to be read though they repeat nothing any more."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return selections.woken(conn, keys)

    def scanned_otherwise(self, scope: str, limit: int = 100_000) -> list[DocumentKey]:
        """Documents whose newest version was scanned by another rule pack, published first."""
        with self.capabilities.database.transaction("pipeline") as conn:
            documents.get_scope(conn, scope)
            return selections.scanned_otherwise(
                conn, scope, self.capabilities.versions.rule_pack, limit
            )

    def in_line(self, stage: AnyStage, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
        """Those of `keys` that the stage before left going on, and that are not settled."""
        if stage is Stage.ACQUIRE:
            return list(keys)
        before = self.order[self.order.index(stage) - 1]
        with self.capabilities.database.transaction("pipeline") as conn:
            rows = documents.load(conn, keys)
            version_keys = [row.version_key for row in rows if row.version_key is not None]
            results = staging.results(conn, version_keys, before)
        waiting = []
        for row in rows:
            result = results.get((row.version_key or 0, before))
            settled = row.settled_fingerprint == self.capabilities.versions.settled(
                row, row.digest or ""
            )
            if row.state in _IN_PROGRESS and result and result.state is None and not settled:
                waiting.append(row.key)
        return waiting

    def run_stage(
        self,
        stage: AnyStage,
        keys: Sequence[DocumentKey],
        *,
        should_stop: Callable[[], bool] = _never,
    ) -> Iterator[tuple[DocumentKey, StageOutcome]]:
        """Run one stage over documents; one outcome each, in order (embed: in groups).

        An unexpected error is stored with its document (state `failed`) and given as the outcome.

        Raises:
            UnavailableError: a service is away; the documents keep their state.
        """
        with self.capabilities.database.transaction("pipeline") as conn:
            rows = documents.load(conn, keys)
        if stage is Stage.EMBED:
            yield from self._embed(rows, should_stop)
            return
        for row, outcome in _runner(stage)(self.capabilities, rows, should_stop):
            yield row.key, self._outcome(stage, row, outcome)

    def run_all(
        self,
        keys: Sequence[DocumentKey],
        *,
        start: Stage = Stage.ACQUIRE,
        should_stop: Callable[[], bool] = _never,
        seen: Callable[[AnyStage, DocumentKey, StageOutcome], None] | None = None,
    ) -> dict[DocumentKey, StageOutcome]:
        """All stages from `start` on, breadth-first; the last outcome of each document."""
        last: dict[DocumentKey, StageOutcome] = {}
        going = list(dict.fromkeys(keys))
        for stage in self.order[self.order.index(start) :]:
            going_on = []
            for key, outcome in self.run_stage(stage, going, should_stop=should_stop):
                last[key] = outcome
                if seen is not None:
                    seen(stage, key, outcome)
                if isinstance(outcome, StageReport) and outcome.goes_on:
                    going_on.append(key)
            if should_stop() or not going_on:
                break
            going = going_on
        return last

    def facts(self, stage: AnyStage, key: DocumentKey) -> dict[str, Any]:
        """What checks need to know about a document at a stage, read from the ledger."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return facts.at(conn, stage, documents.load_one(conn, key))

    def scope_health(self, scope: str) -> health.ScopeHealth:
        """Documents by state, passages and backlog of a scope."""
        with self.capabilities.database.transaction("pipeline") as conn:
            return health.of_scope(
                conn, scope, self.capabilities.clock(), self.capabilities.versions.model_id
            )

    def _embed(
        self, rows: Sequence[DocumentRow], should_stop: Callable[[], bool]
    ) -> Iterator[tuple[DocumentKey, StageOutcome]]:
        """One broken document must not cost its group: then each goes on its own."""
        answered: set[DocumentKey] = set()
        try:
            for row, outcome in _runner(Stage.EMBED)(self.capabilities, rows, should_stop):
                answered.add(row.key)
                yield row.key, self._outcome(Stage.EMBED, row, outcome)
            return
        except UnavailableError:
            if len(rows) == 1:
                raise
        except Exception as error:  # noqa: BLE001 - as in `_each`
            if len(rows) == 1:
                yield rows[0].key, self._ended(Stage.EMBED, rows[0], error)
                return
        for row in rows:
            if row.key not in answered and not should_stop():
                yield from self._embed([row], should_stop)

    def _outcome(self, stage: AnyStage, row: DocumentRow, outcome: StageOutcome) -> StageOutcome:
        return self._ended(stage, row, outcome) if isinstance(outcome, Exception) else outcome

    def _ended(self, stage: AnyStage, row: DocumentRow, error: Exception) -> StageOutcome:
        if isinstance(error, ConflictError):
            return error
        if isinstance(error, PolicyError):
            # The database's own gate refused: the same answer as the stage's.
            started = time.perf_counter()
            return common.report(stage, row, started, worked=False, refused=True, reason=str(error))
        return self._failed(stage, row, error)

    def _failed(self, stage: AnyStage, row: DocumentRow, error: Exception) -> Exception:
        """Store the failure with its document; the next run tries again."""
        reason = (
            f"{stage.value}: {error}"
            if isinstance(error, KbError)
            else (f"{stage.value}: unexpected {type(error).__name__}: {error}")
        )
        with (
            # Removed meanwhile: it stays so. Or newer bytes came: their run goes on.
            contextlib.suppress(PolicyError, ConflictError),
            self.capabilities.database.transaction("pipeline") as conn,
        ):
            locks.hold(conn, row)
            documents.set_state(conn, row, DocumentState.FAILED, reason, attempts=row.attempts + 1)
            if row.version_key is not None:
                staging.forget_after(conn, row, stage, inclusive=True)
            documents.append_lifecycle(
                conn,
                row,
                "failed",
                actor=self.capabilities.actor,
                version=row.latest_version,
                stage=stage.value,
                error=type(error).__name__,
            )
        return error


def one_document(line: Line, request: IngestRequest) -> StageOutcome:
    """Register one document and take it through all stages; its last outcome."""
    key = line.register(request)
    return line.run_all([key])[key]
