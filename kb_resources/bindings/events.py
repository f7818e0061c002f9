"""The few Dagster calls that are internal or preview, behind one door.

Each says what it rests on; tests/dagster/test_contract.py pins every one and says what to
do when a new release breaks it. Nothing else in this project imports `dagster._core`.
Read in dagster 1.13.27: `_core/instance/runs/run_domain.py` and `_core/events/__init__.py`.
"""

from __future__ import annotations

import json
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg


def document_check(
    name: str,
    *,
    asset_key: dg.AssetKey,
    description: str,
    partitions_def: dg.PartitionsDefinition[str],
) -> dg.AssetCheckSpec:
    """A check with one result per document; `partitions_def` on checks is a preview.

    Declared blocking, so that the UI says what hangs on it. The gate is in Postgres and does not
    rely on that: natively blocking acts on a whole run, all or nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            name,
            asset=asset_key,
            description=description,
            blocking=True,
            partitions_def=partitions_def,
        )


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes the events of one step, many in a statement.

    Yielding them is Dagster's way: five statements and 10 ms of CPU each, of which a document has
    some twenty-five. The rows written here are the same ones, without what every event of a step
    repeats. A check that passed has its row in the table the UI reads, and none in the run's log,
    where thousands would hide the few that failed.

    Attributes:
        instance: where the run is recorded.
        run: the run.
        step_key: the step, None outside of one.
    """

    instance: dg.DagsterInstance
    run: dg.DagsterRun
    step_key: str | None = None

    def materialized(self, events: Sequence[dg.AssetMaterialization]) -> None:
        """Record materialisations of one asset."""
        from dagster._core.events import DagsterEventType, StepMaterializationData

        if events:
            self.instance.event_log_storage.store_event_batch(
                [
                    self._entry(DagsterEventType.ASSET_MATERIALIZATION, StepMaterializationData(e))
                    for e in events
                ]
            )

    def planned(self, asset_key: dg.AssetKey, keys: Iterable[str]) -> None:
        """Record that the run meant to materialise partitions.

        Those that it did not are red once it failed. Dagster plans by itself for asset runs; a job
        of plain ops has no plans, and a document that broke would stay without colour.
        """
        from dagster._core.events import AssetMaterializationPlannedData, DagsterEventType

        for key in keys:
            self.instance.event_log_storage.store_event(
                self._entry(
                    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
                    AssetMaterializationPlannedData(asset_key, partition=key),
                )
            )

    def evaluated(self, evaluations: Sequence[dg.AssetCheckEvaluation]) -> None:
        """Record check results: failed ones as full events, passed ones in one statement."""
        from dagster._core.events import DagsterEventType
        from dagster._core.storage.event_log import SqlEventLogStorage

        storage = self.instance.event_log_storage
        kind = DagsterEventType.ASSET_CHECK_EVALUATION
        in_bulk = isinstance(storage, SqlEventLogStorage) and _speaks_postgres(storage)
        passed = [e for e in evaluations if e.passed and in_bulk]
        for evaluation in evaluations:
            if not evaluation.passed or not in_bulk:
                storage.store_event(self._entry(kind, evaluation))
        if passed:
            self._insert_passed(storage, [(e, self._entry(kind, e)) for e in passed])

    def _insert_passed(
        self, storage: Any, passed: Sequence[tuple[dg.AssetCheckEvaluation, Any]]
    ) -> None:
        from dagster._core.storage.asset_check_execution_record import (
            AssetCheckExecutionRecordStatus,
        )
        from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable
        from sqlalchemy.dialects.postgresql import insert

        # Readers page by this number and pass over rows without one.
        newest = storage.get_maximum_record_id()
        statement = insert(AssetCheckExecutionsTable).values(
            [
                {
                    "asset_key": evaluation.asset_key.to_string(),
                    "check_name": evaluation.check_name,
                    "partition": evaluation.partition,
                    "run_id": self.run.run_id,
                    "execution_status": AssetCheckExecutionRecordStatus.SUCCEEDED.value,
                    "evaluation_event": _compact(entry),
                    "evaluation_event_timestamp": datetime.fromtimestamp(
                        entry.timestamp, UTC
                    ).replace(tzinfo=None),
                    "evaluation_event_storage_id": newest,
                }
                for evaluation, entry in passed
            ]
        )
        unique = ("asset_key", "check_name", "run_id", "partition")
        overwritten = (
            "execution_status",
            "evaluation_event",
            "evaluation_event_timestamp",
            "evaluation_event_storage_id",
        )
        with storage.index_connection() as conn:
            conn.execute(
                # A planned row, or one of an earlier try of the step, may stand there.
                statement.on_conflict_do_update(
                    index_elements=unique,
                    set_={name: statement.excluded[name] for name in overwritten},
                )
            )

    def _entry(self, kind: Any, data: Any) -> Any:
        from dagster import EventLogEntry
        from dagster._core.events import DagsterEvent

        return EventLogEntry(  # type: ignore[no-untyped-call]
            error_info=None,
            level=logging.DEBUG,
            user_message="",
            run_id=self.run.run_id,
            timestamp=time.time(),
            step_key=self.step_key,
            job_name=self.run.job_name,
            dagster_event=DagsterEvent(
                event_type_value=kind.value,
                job_name=self.run.job_name,
                event_specific_data=data,
                step_key=self.step_key,
            ),
        )


def _compact(entry: Any) -> str:
    """An event as Dagster writes it, without what its reader takes for granted.

    A fifth shorter, so that an eighth row fits into a page; a document has fourteen of them.
    """
    from dagster import serialize_value

    required = "error_info"

    def said(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: said(part)
            for name, part in value.items()
            if name == required or (part is not None and part != {})
        }

    return json.dumps(said(json.loads(serialize_value(entry))), separators=(",", ":"))


def _speaks_postgres(storage: Any) -> bool:
    with storage.index_connection() as conn:
        return bool(conn.dialect.name == "postgresql")


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Let a run's event log reuse its connection instead of opening one per event.

    The web server does the same on start (`optimize_for_webserver`); a batch logs thousands of
    events, and connecting was most of their cost.
    """
    if instance.is_persistent and type(instance.event_log_storage).__name__.startswith("Postgres"):
        instance.optimize_for_webserver(statement_timeout=60_000, pool_recycle=3600, max_overflow=5)


def bury_runs(instance: dg.DagsterInstance, is_dead: Callable[[dg.DagsterRun], bool]) -> list[str]:
    """Mark runs as failed whose worker is gone; the default launcher never notices by itself.

    Args:
        instance: where the runs are recorded.
        is_dead: asked for every run that counts as going on.

    Returns:
        Ids of the runs that failed so.
    """
    going_on = dg.RunsFilter(
        statuses=[
            dg.DagsterRunStatus.STARTING,
            dg.DagsterRunStatus.STARTED,
            dg.DagsterRunStatus.CANCELING,
        ]
    )
    dead = [run for run in instance.get_runs(going_on) if is_dead(run)]
    for run in dead:
        instance.report_run_failed(run, "The process that worked on this run is gone.")
    return [run.run_id for run in dead]


def was_launched(run: dg.DagsterRun) -> bool:
    """Whether a code server's launcher started the run, rather than a process of ours."""
    from dagster._core.storage.tags import GRPC_INFO_TAG

    return GRPC_INFO_TAG in run.tags


def launched_process(instance: dg.DagsterInstance, run: dg.DagsterRun) -> tuple[int, float] | None:
    """The process that a code server on this machine started for a run.

    Returns:
        Its process id, and when it said that it was there (seconds since the epoch); None where the
        run was started otherwise, elsewhere, or where nothing was heard of it yet.
    """
    from dagster._core.storage.tags import GRPC_INFO_TAG

    if "socket" not in json.loads(run.tags.get(GRPC_INFO_TAG, "{}")):
        return None
    engine = dg.DagsterEventType.ENGINE_EVENT
    for record in instance.get_records_for_run(run.run_id, of_type=engine).records:
        entry = record.event_log_entry
        event = entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event is not None else None
        if pid is not None:
            return int(str(pid.value)), entry.timestamp
    return None


def launch_backfill(
    instance: dg.DagsterInstance,
    repository: dg.RepositoryDefinition,
    *,
    backfill_id: str,
    assets: Sequence[dg.AssetKey],
    keys: Sequence[str],
    tags: Mapping[str, str],
    title: str,
    description: str,
    now: datetime,
) -> bool:
    """Ask the daemon for a backfill, as the GraphQL mutation `launchPartitionBackfill` does.

    Args:
        instance: where the backfill is recorded.
        repository: the code location's definitions.
        backfill_id: chosen by the caller, so that asking twice gives one backfill.
        assets: assets to materialise.
        keys: partition keys, known to the instance.
        tags: run tags.
        title: shown in the Backfills tab.
        description: shown there too.
        now: aware time of the request.

    Returns:
        False when that backfill was asked for before.
    """
    from dagster._core.execution.backfill import PartitionBackfill

    if instance.get_backfill(backfill_id) is not None:
        return False
    instance.add_backfill(
        PartitionBackfill.from_asset_partitions(
            backfill_id=backfill_id,
            asset_graph=repository.asset_graph,
            partition_names=list(keys),
            asset_selection=list(assets),
            backfill_timestamp=now.timestamp(),
            tags=dict(tags),
            dynamic_partitions_store=instance,
            all_partitions=False,
            title=title,
            description=description,
            run_config=None,
        )
    )
    return True
