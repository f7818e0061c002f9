"""What runs beside documents: stranded ones, failed runs, re-embedding, scopes, `kb ingest`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from kb_resources.errors import PolicyError
from kb_resources.model import DocumentKey, Stage
from kb_resources.stages import reembed
from kb_resources.stages.orchestration import scope_sums, waiting_documents
from kb_resources.stages.reembed_view import status
from kb_resources.store import ann

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

ROOT = Path(__file__).parents[2]
GOOD = "# House {n}\n\nThe office in house {n} opens at eight and closes at five on working days.\n"


def houses(*numbers: int) -> dict[str, str | bytes]:
    return {f"house-{n}.md": GOOD.format(n=n) for n in numbers}


def make_old(plant: Plant) -> None:
    """Let every row be an hour older than it is."""
    with plant.line.capabilities.database.transaction("owner") as conn:
        conn.execute("update kb.document set updated_at = updated_at - interval '1 hour'")
        conn.execute("update kb.batch set created_at = created_at - interval '1 hour'")


def start_run(plant: Plant, batch_id: str, status: dg.DagsterRunStatus) -> dg.DagsterRun:
    return plant.instance.create_run_for_job(
        plant.defs.resolve_job_def("kb_batch"),
        run_config={"batch_id": batch_id},
        tags={"kb/batch": batch_id},
        status=status,
    )


def test_stranded_documents_are_told_from_those_on_their_way(plant: Plant) -> None:
    from kb_assets.stranded import sort_out

    working, left, lost, alone = plant.register(houses(1, 2, 3, 4))
    batches = {
        key: plant.line.new_batch([key], actor="t", cause="t") for key in (working, left, lost)
    }
    start_run(plant, batches[working], dg.DagsterRunStatus.STARTED)
    start_run(plant, batches[left], dg.DagsterRunStatus.FAILURE)
    assert waiting_documents(plant.line, older_than_s=120, max_tries=3, limit=10) == []
    make_old(plant)
    waiting = waiting_documents(plant.line, older_than_s=120, max_tries=3, limit=10)
    lost_batches, left_behind = sort_out(plant.instance, waiting)
    assert {batch: [i.key for i in items] for batch, items in lost_batches.items()} == {
        batches[lost]: [lost]
    }
    assert {item.key for item in left_behind} == {left, alone}


def test_a_stranded_document_is_tried_three_times_and_then_left_to_people(plant: Plant) -> None:
    from kb_assets.stranded import MAX_TRIES, stranded_documents

    plant.register(houses(1))
    make_old(plant)
    asked = []
    for _ in range(MAX_TRIES + 2):
        with dg.build_sensor_context(
            instance=plant.instance, resources={"line": plant.line}
        ) as ctx:
            result = stranded_documents(ctx)
        if isinstance(result, dg.SkipReason):
            continue
        (request,) = result.run_requests or ()
        asked.append(request.run_key)
        start_run(plant, str(request.run_key), dg.DagsterRunStatus.FAILURE)
    assert len(asked) == len(set(asked)) == MAX_TRIES


def test_documents_beyond_help_do_not_starve_thosebehind_them(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets import stranded

    hopeless, behind = plant.register(houses(1, 2))
    for _ in range(stranded.MAX_TRIES):
        plant.line.new_batch([hopeless], actor="t", cause="stranded")
    with plant.line.capabilities.database.transaction("owner") as conn:
        conn.execute("update kb.document set updated_at = now() - interval '1 hour'")
        conn.execute(
            "update kb.document set updated_at = now() - interval '2 hours' where document_id = %s",
            [hopeless.document_id],
        )
    monkeypatch.setattr(stranded, "LIMIT", 1)
    with dg.build_sensor_context(instance=plant.instance, resources={"line": plant.line}) as ctx:
        result = stranded.stranded_documents(ctx)
    assert isinstance(result, dg.SensorResult)
    (request,) = result.run_requests or ()
    assert plant.line.batch(str(request.run_key)) == [behind]


def test_a_slot_that_a_killed_worker_held_does_not_keep_the_next_run_waiting(plant: Plant) -> None:
    """Without a daemon too: `kb ingest` alone would wait for it forever."""
    from kb_assets.pools import ensure_pools

    [key] = plant.register(houses(1))
    killed = start_run(plant, "none", dg.DagsterRunStatus.FAILURE)
    ensure_pools(plant.instance)
    storage = plant.instance.event_log_storage
    assert storage.claim_concurrency_slot("kb_parse", killed.run_id, "parse").is_claimed
    assert plant.batch([key]).success
    assert plant.states([key]) == {str(key): "indexed"}


def test_the_stage_in_which_a_worker_was_killed_is_the_one_that_turns_red(plant: Plant) -> None:
    """A killed worker writes nothing more; the failure sensor colours what it left."""
    from kb_assets.run_failure import color_unfinished

    keys = plant.register(houses(1, 2))
    assert plant.batch(keys, stages=["acquire", "parse"]).success
    batch_id = plant.line.new_batch(keys, actor="t", cause="t")
    run = start_run(plant, batch_id, dg.DagsterRunStatus.STARTED)
    plant.log_step_start(run, "language")
    plant.instance.report_run_failed(run, "killed")
    assert color_unfinished(plant.instance, plant.line, run) is Stage.LANGUAGE
    assert plant.red(Stage.LANGUAGE) == {str(key) for key in keys}
    assert not plant.red(Stage.PARSE)
    assert plant.batch(keys).success
    assert not any(plant.red(stage) for stage in Stage)


@pytest.mark.requirement("O-15", "B-19")
def test_scopes_of_another_model_get_a_shadow_and_one_backfill_a_night(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.reembed import reembed_nightly

    keys = plant.register(houses(1, 2, 3))
    assert plant.batch(keys).success
    live = _searched_by_another_model(plant)

    def tonight() -> str:
        with dg.build_schedule_context(
            instance=plant.instance,
            scheduled_execution_time=datetime(2026, 3, 1, 2, 30, tzinfo=UTC),
            repository_def=plant.defs.get_repository_def(),
            resources={"line": plant.line},
        ) as context:
            result = reembed_nightly(context)
        assert isinstance(result, dg.SkipReason)
        return str(result.skip_message)

    monkeypatch.setenv("KB_REEMBED_PER_NIGHT", "2")
    said = tonight()
    assert "over 2 documents asked for" in said
    assert "New shadows: acme." in said
    assert "was asked for before" in tonight()
    (backfill,) = plant.instance.get_backfills()
    assert backfill.tags["kb/cause"] == "reembed"
    asked = [Stage(asset.path[-1]) for asset in backfill.asset_selection or ()]
    before = datetime.now(UTC).timestamp()
    for key in keys:  # as the daemon does it, a run each here
        assert plant.materialize(key, *asked).success
    assert all(_told_since(plant, stage, before) == set(map(str, keys)) for stage in asked)
    (stands,) = status(plant.line.capabilities)
    assert (stands.live, stands.beside_is) == (live, "shadow")
    assert (stands.done, stands.total) == (3, 3)
    assert plant.states(keys) == dict.fromkeys(map(str, keys), "indexed")
    for name in ("embedded_once", "one_model", "unit_norm"):
        assert set(plant.checks(Stage.EMBED, name).values()) == {"SUCCEEDED"}
    assert set(plant.checks(Stage.INDEX, "schema").values()) == {"SUCCEEDED"}
    assert "No document lacks" in tonight()


def _told_since(plant: Plant, stage: Stage, before: float) -> set[str | None]:
    """Documents with an event of the asset; one without makes the daemon call a backfill failed."""
    asked = dg.AssetRecordsFilter(dg.AssetKey(["kb", stage.value]), after_timestamp=before)
    found = plant.instance.fetch_materializations(asked, limit=10)
    return {record.partition_key for record in found.records}


@pytest.mark.requirement("P-78")
def test_a_backfill_over_documents_that_need_nothing_has_an_event_for_each_target(
    plant: Plant,
) -> None:
    (key,) = plant.register(houses(4))
    assert plant.batch([key]).success
    before = datetime.now(UTC).timestamp()
    assert plant.materialize(key, *Stage).success
    assert {stage for stage in Stage if _told_since(plant, stage, before) != {str(key)}} == set()


def _searched_by_another_model(plant: Plant) -> str:
    """Turn the scope to hashed words, as an installation is found whose KB_MODEL was changed."""
    caps = plant.line.capabilities
    live = reembed.start(caps, "acme", "hashing", actor="test").beside
    reembed.fill_scope(caps, "acme")
    reembed.swap(caps, "acme", actor="test")
    reembed.drop(caps, "acme", actor="test")
    assert live is not None
    return live


@pytest.mark.requirement("B-19")
def test_an_operator_sees_which_shadow_may_be_swapped(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.generations import generations

    plant.batch(plant.register(houses(1, 2)))
    caps = plant.line.capabilities

    def run() -> tuple[dict[str, bool], dict[str, object]]:
        done = dg.materialize(
            [generations], instance=plant.instance, resources={"line": plant.line}
        )
        (event,) = done.asset_materializations_for_node("kb_scopes__generations")
        (row,) = event.metadata["by_scope"].records
        checks = {each.check_name: each.passed for each in done.get_asset_check_evaluations()}
        return checks, dict(row.data)

    good = {"swap_quality": True, "live_as_set": True, "nothing_given_up": True}
    checks, row = run()
    assert checks == good
    assert (row["live"], row["beside"]) == (caps.versions.model_id, "")
    reembed.start(caps, "acme", "hashing", actor="test")
    reembed.fill_scope(caps, "acme")
    checks, row = run()
    assert checks == good
    assert (row["is"], row["done"], row["total"], row["recall"]) == ("shadow", 2, 2, 1.0)
    assert "kb reembed swap" in str(row["next"])
    monkeypatch.setattr("kb_resources.stages.swap_quality.MIN_OVERLAP", 1.1)
    assert run()[0] == good | {"swap_quality": False}
    with pytest.raises(PolicyError, match="not as good"):
        reembed.swap(caps, "acme", actor="test")
    monkeypatch.undo()
    reembed.swap(caps, "acme", actor="test")
    assert run()[0] == good | {"live_as_set": False}


@pytest.mark.requirement("P-01")
def test_the_sums_of_every_scope_match_and_a_wrong_one_is_named(plant: Plant) -> None:
    from kb_assets.scopes import health, terms

    plant.batch([*plant.register(houses(1, 2)), *plant.register(houses(3), scope="beta")])
    (acme, beta) = scope_sums(plant.line)
    assert (acme.scope, acme.documents, acme.states) == ("acme", 2, {"indexed": 2})
    assert (beta.documents, beta.indexed_without_version, beta.passages_adrift) == (1, 0, 0)

    def run() -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [health, terms], instance=plant.instance, resources={"line": plant.line}
        )

    assert all(check.passed for check in run().get_asset_check_evaluations())
    with plant.line.capabilities.database.transaction("owner") as conn:
        conn.execute(
            "update kb.document set state = 'indexed', latest_version = null "
            "where document_id like 'house-3%'"
        )
        conn.execute(
            "delete from kb.validity x using kb.document d where d.document_key = "
            "x.document_key and d.document_id like 'house-3%'"
        )
    failed = {c.check_name: c for c in run().get_asset_check_evaluations() if not c.passed}
    assert set(failed) == {"sums_match"}
    (row,) = failed["sums_match"].metadata["where"].records
    assert row.data["scope"] == "beta"


@pytest.mark.requirement("B-24")
def test_large_scopes_get_an_index_and_an_operator_sees_which(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.vector_indexes import INDEXES, vector_indexes

    plant.batch(plant.register(houses(1, 2)))
    monkeypatch.setattr("kb_resources.store.ann.maintain", partial(ann.maintain, limit=2))

    def run() -> dg.AssetMaterialization:
        done = dg.materialize(
            [vector_indexes], instance=plant.instance, resources={"line": plant.line}
        )
        (event,) = done.asset_materializations_for_node(INDEXES.to_python_identifier())
        return event

    assert run().metadata["changed"].value == 1
    assert run().metadata["changed"].value == 0
    monkeypatch.setattr("kb_resources.store.ann.maintain", partial(ann.maintain, limit=10**9))
    (row,) = run().metadata["changes"].records
    assert row.data["action"] == "drop"


@pytest.mark.requirement("O-62")
def test_the_child_process_of_kb_ingest_records_a_run_and_gives_the_same_rows(
    plant: Plant,
) -> None:
    keys = plant.register(houses(1, 2))
    other = plant.register(houses(1, 2), scope="beta")
    batch_id = plant.line.new_batch(keys, actor="test", cause="kb ingest")
    plant.line.run_all(other)
    environment = os.environ | {"KB_DAGSTER_DATABASE_URL": os.environ["KB_DAGSTER_URL"]}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "kb_assets.ingest", batch_id],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    run = plant.instance.get_run_by_id(outcome["run_id"])
    assert run is not None
    assert (run.status.value, run.tags["kb/cause"]) == ("SUCCESS", "kb ingest")
    assert plant.green(Stage.INDEX) == {str(key) for key in keys}
    assert _rows(plant, "acme") == _rows(plant, "beta")


def test_the_child_process_says_that_a_batch_broke(plant: Plant) -> None:
    from kb_assets.ingest import main

    (key,) = plant.register(houses(1))
    (plant.folder / "acme" / "house-1.md").unlink()
    batch_id = plant.line.new_batch([key], actor="test", cause="kb ingest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_DAGSTER_DATABASE_URL", os.environ["KB_DAGSTER_URL"])
        assert main([batch_id]) == 1


def _rows(plant: Plant, scope: str) -> list[tuple[object, ...]]:
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        return conn.execute(
            "select d.document_id, d.state, v.digest, v.body_digest, v.language, p.passage_id, "
            "p.text, p.byte_start, p.byte_end from kb.passage p join kb.version v using "
            "(version_key) join kb.document d using (document_key) join kb.scope s on "
            "s.scope_id = d.scope_id where s.name = %s order by 1, 6",
            [scope],
        ).fetchall()


def test_a_partition_key_is_the_documents_key() -> None:
    key = DocumentKey("acme", "leave-12ab")
    assert DocumentKey.parse(str(key)) == key
