"""The preview and internal Dagster calls that the line rests on (`kb_resources.bindings.events`).

Pinned on dagster 1.13.27. When a new release breaks one of these tests, its docstring says what to
do; nothing outside that module imports `dagster._core`.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from kb_resources.bindings.events import (
    Recorder,
    keep_connections,
    launch_backfill,
    was_launched,
)
from kb_resources.bindings.partitions import add_documents, documents
from kb_resources.model import DocumentKey, Stage

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

ROOT = Path(__file__).parents[2]
KEY = dg.AssetKey(["kb", "scan"])
CHECK = dg.AssetCheckKey(KEY, "verdict_clean")


@pytest.fixture
def run(plant: Plant) -> dg.DagsterRun:
    """A finished run to hang events on."""
    result = plant.run_batch({"scope": "acme", "where": "failed"})
    found = plant.instance.get_run_by_id(result.run_id)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def scope(plant: Plant) -> None:
    plant.register({"a.md": "# A\n\nThe archive is on the third floor.\n"})
    add_documents(plant.instance, [DocumentKey("acme", f"d{n}") for n in range(3)])


def evaluation(partition: str, *, passed: bool) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        KEY, "verdict_clean", passed, {"findings": 2.0}, partition=partition, description="why"
    )


def test_the_installed_release_is_the_pinned_one() -> None:
    """Fails on an upgrade: run this file, mend `bindings/events.py`, then pin the new number."""
    assert dg.__version__ == "1.13.27"


def test_internals_are_imported_in_one_module_only() -> None:
    """Move a new internal import into `bindings/events.py` and pin it here."""
    importing = {
        str(path.relative_to(ROOT))
        for package in ("kb_resources", "kb_checks", "kb_assets", "kb")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"^\s*(from|import) dagster\._", path.read_text(), re.MULTILINE)
    }
    assert importing == {"kb_resources/bindings/events.py"}


def test_materialisations_recorded_together_are_those_that_everything_reads(
    plant: Plant, run: dg.DagsterRun
) -> None:
    """Rests on `EventLogStorage.store_event_batch`. Broken: `context.log_event` one by one."""
    events = [
        dg.AssetMaterialization(
            KEY, partition=f"acme:d{n}", metadata={"n": n}, tags={"dagster/code_version": "7"}
        )
        for n in range(3)
    ]
    Recorder(plant.instance, run, "scan").materialized(events)
    assert plant.green(Stage.SCAN) == {"acme:d0", "acme:d1", "acme:d2"}
    found = plant.newest(Stage.SCAN, DocumentKey("acme", "d1"))
    assert (found.metadata["n"].value, (found.tags or {})["dagster/code_version"]) == (1, "7")
    latest = plant.instance.get_latest_materialization_event(KEY)
    assert latest is not None
    assert latest.run_id == run.run_id
    logged = [
        event.step_key for event in plant.instance.all_logs(run.run_id) if event.is_dagster_event
    ]
    assert logged.count("scan") >= 3


def test_checks_that_passed_are_read_like_yielded_ones(plant: Plant, run: dg.DagsterRun) -> None:
    """Rests on the table `asset_check_executions` and its unique index.

    Broken: set `in_bulk` in `Recorder.evaluated` to False; the full events are the public way.
    """
    recorder = Recorder(plant.instance, run, "scan")
    recorder.evaluated([evaluation(f"acme:d{n}", passed=n != 1) for n in range(3)])
    assert plant.checks(Stage.SCAN, "verdict_clean") == {
        "acme:d0": "SUCCEEDED",
        "acme:d1": "FAILED",
        "acme:d2": "SUCCEEDED",
    }
    storage = plant.instance.event_log_storage
    history = storage.get_asset_check_execution_history(CHECK, limit=10)
    assert len(history) == 3
    passed = next(item for item in history if item.partition == "acme:d0")
    assert passed.event is not None
    assert passed.event.dagster_event is not None
    read = passed.event.dagster_event.asset_check_evaluation_data
    assert (read.passed, read.metadata["findings"].value, read.description) == (True, 2.0, "why")
    assert read.severity == dg.AssetCheckSeverity.ERROR
    assert read == evaluation("acme:d0", passed=True)  # what the row leaves out is the default
    newest = storage.get_latest_asset_check_execution_by_key([CHECK])
    assert newest[CHECK].status.value in ("SUCCEEDED", "FAILED")


def test_a_check_asked_twice_in_a_run_keeps_one_row_and_the_newest_answer(
    plant: Plant, run: dg.DagsterRun
) -> None:
    """Rests on `idx_asset_check_executions_unique`. Broken: delete the run's rows first."""
    recorder = Recorder(plant.instance, run, "scan")
    recorder.evaluated([evaluation("acme:d0", passed=False)])
    recorder.evaluated([evaluation("acme:d0", passed=True)])
    assert plant.checks(Stage.SCAN, "verdict_clean") == {"acme:d0": "SUCCEEDED"}
    recorder.evaluated([evaluation("acme:d0", passed=False)])
    assert plant.checks(Stage.SCAN, "verdict_clean") == {"acme:d0": "FAILED"}
    history = plant.instance.event_log_storage.get_asset_check_execution_history(CHECK, limit=10)
    assert len(history) == 1


def test_a_planned_partition_of_a_failed_run_is_red_and_a_later_success_takes_it_back(
    plant: Plant,
) -> None:
    """Rests on `AssetMaterializationPlannedData`. Broken: broken documents lose their colour, and
    show in the run's failure and in the ledger alone.
    """
    (key,) = plant.register({"gone.md": "# Gone\n\nNobody finds this one.\n"})
    path = plant.folder / "acme" / "gone.md"
    path.unlink()
    assert not plant.batch([key]).success
    assert plant.red(Stage.ACQUIRE) == {str(key)}
    path.write_text("# Back\n\nThe lost property office has it again.\n")
    assert plant.batch([key]).success
    assert plant.red(Stage.ACQUIRE) == set()


def test_a_partitioned_check_is_still_a_preview_that_is_accepted(plant: Plant) -> None:
    """Rests on `AssetCheckSpec(partitions_def=…)`. Broken: leave it out; results stay per document,
    the UI then shows the newest one only.
    """
    (check,) = (key for key in plant.defs.resolve_asset_graph().asset_check_keys if key == CHECK)
    assert plant.defs.resolve_asset_graph().get(check).partitions_def == documents


def test_the_event_log_can_keep_its_connection(plant: Plant, run: dg.DagsterRun) -> None:
    """Rests on `DagsterInstance.optimize_for_webserver`. Broken: drop it, only speed."""
    keep_connections(plant.instance)
    with plant.instance.event_log_storage.index_connection() as conn:
        assert type(conn.engine.pool).__name__ == "QueuePool"
    Recorder(plant.instance, run, "scan").materialized(
        [dg.AssetMaterialization(KEY, partition="acme:d0")]
    )
    assert plant.green(Stage.SCAN) == {"acme:d0"}


def test_a_backfill_asked_for_is_listed_once_with_title_and_documents(plant: Plant) -> None:
    """Rests on `PartitionBackfill.from_asset_partitions` and `DagsterInstance.add_backfill`.

    Broken: launch through GraphQL (`launchPartitionBackfill`), which needs the web server.
    """
    keys = ["acme:d0", "acme:d2"]
    asked = [
        launch_backfill(
            plant.instance,
            plant.defs.get_repository_def(),
            backfill_id="night",
            assets=[dg.AssetKey(["kb", "embed"]), dg.AssetKey(["kb", "index"])],
            keys=keys,
            tags={"kb/cause": "reembed"},
            title="Embed again",
            description="two",
            now=datetime.now(UTC),
        )
        for _ in range(2)
    ]
    assert asked == [True, False]
    (backfill,) = plant.instance.get_backfills()
    assert (backfill.title, backfill.tags["kb/cause"]) == ("Embed again", "reembed")
    data = backfill.get_asset_backfill_data(plant.defs.get_repository_def().asset_graph)
    targeted = data.target_subset.get_partitions_subset(dg.AssetKey(["kb", "embed"]))
    assert set(targeted.get_partition_keys()) == set(keys)


def test_a_run_whose_worker_is_gone_can_be_buried(plant: Plant) -> None:
    """Rests on `report_run_failed`. Broken: such runs stay open until `max_runtime_seconds`."""
    from kb_assets.workers import WORKER_TAG, clear_up, this_worker

    job = plant.defs.resolve_job_def("kb_batch")
    host, _, created = this_worker().split()
    tags = {"alive": this_worker(), "dead": f"{host} 4000000 {created}", "elsewhere": "moon 1 1.0"}
    runs = {
        name: plant.instance.create_run_for_job(
            job,
            run_config={"scope": "acme"},
            tags={WORKER_TAG: tag},
            status=dg.DagsterRunStatus.STARTED,
        )
        for name, tag in tags.items()
    }
    # A repetition has the tags of the run that it repeats, and a worker of its own.
    runs["again"] = plant.instance.create_run_for_job(
        job,
        run_config={"scope": "acme"},
        tags={WORKER_TAG: tags["dead"]},
        status=dg.DagsterRunStatus.STARTED,
        parent_run_id=runs["dead"].run_id,
        root_run_id=runs["dead"].run_id,
    )
    assert clear_up(plant.instance) == [runs["dead"].run_id]
    statuses = {name: plant.instance.get_run_by_id(run.run_id) for name, run in runs.items()}
    assert {name: run.status.value for name, run in statuses.items() if run} == {
        "alive": "STARTED",
        "dead": "FAILURE",
        "elsewhere": "STARTED",
        "again": "STARTED",
    }


def test_a_run_of_a_code_server_is_buried_with_its_worker_and_gives_its_slot_back(
    plant: Plant,
) -> None:
    """Rests on the engine event with which a worker begins, and on the table of slots.

    Broken: runs whose code server and worker were killed stay open, and their pool stays taken.
    """
    from dagster._core.events import EngineEventData

    from kb_assets.pools import ensure_pools
    from kb_assets.workers import clear_up

    def begun(pid: int | None, where: str = '{"host": "localhost", "socket": "/code.sock"}') -> str:
        run = plant.instance.create_run_for_job(
            plant.defs.resolve_job_def("kb_batch"),
            run_config={"scope": "acme"},
            tags={".dagster/grpc_info": where},
            status=dg.DagsterRunStatus.STARTED,
        )
        plant.instance.report_engine_event("Asked for", run)
        if pid is not None:
            there = EngineEventData.in_process(pid)
            plant.instance.report_engine_event("Started process for run", run, there)
        return run.run_id

    def claims(run_id: str) -> bool:
        storage = plant.instance.event_log_storage
        return bool(storage.claim_concurrency_slot("kb_parse", run_id, "parse").is_claimed)

    ensure_pools(plant.instance)
    dead, living, silent = begun(4_000_000), begun(os.getpid()), begun(None)
    elsewhere = begun(4_000_000, '{"host": "kb-code", "port": 4000}')
    assert claims(dead)
    assert not claims(living)
    assert clear_up(plant.instance) == [dead]
    assert claims(living)
    assert clear_up(plant.instance) == []
    assert not claims(silent)
    statuses = [plant.instance.get_run_by_id(run_id) for run_id in (living, silent, elsewhere)]
    assert {run.status.value for run in statuses if run} == {"STARTED"}


def test_a_run_of_a_code_server_is_told_by_its_tag(plant: Plant, run: dg.DagsterRun) -> None:
    """Rests on `.dagster/grpc_info`. Broken: find the default launcher's new tag."""
    assert not was_launched(run)
    assert was_launched(run.with_tags({**run.tags, ".dagster/grpc_info": "{}"}))
