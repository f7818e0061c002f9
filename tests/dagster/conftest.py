"""A real Dagster instance on Postgres, with the real line behind the real definitions.

Belongs here: fixtures and small readers of the event log. Dagster warns about itself (pydantic's
old names, previews); those warnings are let through for these tests alone.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psycopg
import pytest

from kb_resources import embed
from kb_resources.bindings.partitions import add_documents
from kb_resources.compose import open_line
from kb_resources.model import AnyStage, DocumentKey, Source, SourceKind
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest
from kb_resources.store.server import EmbeddedServer

ROOT = Path(__file__).parents[2]


def asset_key(stage: AnyStage) -> dg.AssetKey:
    return dg.AssetKey(["kb", stage.value])


_TEMPLATE = "dagster_template"
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The model cache that `make demo` uses too, filled once."""
    folder = ROOT / ".kb" / "models"
    embed.prepare(folder, embed.DEFAULT_MODEL)
    return folder


@pytest.fixture
def environment(
    server: EmbeddedServer,
    database_name: str,
    tmp_path: Path,
    models_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """An installation's `KB_*` variables; returns its home."""
    home = tmp_path / "home"
    for name, value in {
        "KB_HOME": home,
        "KB_DATABASE_URL": server.dsn("owner", database_name),
        "KB_PIPELINE_DATABASE_URL": server.dsn("pipeline", database_name),
        "KB_APP_DATABASE_URL": server.dsn("app", database_name),
        "KB_MODELS_DIR": models_dir,
        "KB_BLOB_URL": tmp_path / "blobs",
        "KB_DROPZONE": tmp_path / "dropzone",
    }.items():
        monkeypatch.setenv(name, str(value))
    (tmp_path / "dropzone").mkdir()
    return home


@pytest.fixture(scope="session")
def dagster_template(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of a database with Dagster's tables, to be copied."""
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {_TEMPLATE}")
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("dagster-template")
        with _instance(server, _TEMPLATE, home, patch) as instance:
            assert instance.get_runs_count() == 0
    return _TEMPLATE


@pytest.fixture
def instance(
    server: EmbeddedServer,
    dagster_template: str,
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance of this test's own, configured by the packaged dagster.yaml."""
    name = f"dagster_test_{next(_numbers)}"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {dagster_template} strategy file_copy")
        with _instance(server, name, tmp_path / "dagster", monkeypatch) as made:
            yield made
        conn.execute(f"drop database {name} with (force)")


def _instance(
    server: EmbeddedServer, database: str, home: Path, patch: pytest.MonkeyPatch
) -> dg.DagsterInstance:
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "kb_assets" / "dagster.yaml", home / "dagster.yaml")
    patch.setenv("DAGSTER_HOME", str(home))
    patch.setenv("KB_DAGSTER_URL", server.sqlalchemy_url(database))
    patch.setenv("DAGSTER_EVENT_BATCH_SIZE", "50")
    return dg.DagsterInstance.from_config(str(home))


@pytest.fixture
def line(environment: Path) -> Iterator[Line]:
    """The line, as the definitions open it too."""
    with open_line(load_settings(), actor="test") as opened:
        yield opened


@dataclass
class Plant:
    """Definitions, instance, line and a folder of sources."""

    instance: dg.DagsterInstance
    line: Line
    folder: Path
    defs: dg.Definitions

    def register(self, texts: Mapping[str, str | bytes], scope: str = "acme") -> list[DocumentKey]:
        """Write files and make them known, as intake does."""
        keys = []
        for name, text in texts.items():
            path = self.folder / scope / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            source = Source(SourceKind.FILE, str(path), name)
            keys.append(self.line.register(IngestRequest(scope=scope, source=source, actor="test")))
        return keys

    def batch(self, keys: Sequence[DocumentKey], **config: object) -> dg.JobExecutionResult:
        """One kb_batch run over the documents."""
        batch_id = self.line.new_batch(keys, actor="test", cause="test")
        return self.run_batch({"batch_id": batch_id, **config}, {"kb/batch": batch_id})

    def run_batch(
        self, config: Mapping[str, object], tags: Mapping[str, str] | None = None
    ) -> dg.JobExecutionResult:
        """One kb_batch run with a configuration."""
        from kb_assets.jobs import run_batch

        return run_batch(self.instance, config, tags or {})

    def materialize(self, key: DocumentKey, *stages: AnyStage) -> dg.JobExecutionResult:
        """The asset door for one document, as the launchpad does it."""
        from kb_assets.jobs import run_assets

        add_documents(self.instance, [key])
        return run_assets(self.instance, str(key), [asset_key(stage) for stage in stages])

    def rerun_from_failure(self, result: dg.JobExecutionResult) -> dg.JobExecutionResult:
        """Re-execution from the failed step, as the run page offers it."""
        from kb_assets.jobs import run_batch

        run = self.instance.get_run_by_id(result.run_id)
        assert run is not None
        again = dg.ReexecutionOptions.from_failure(result.run_id, self.instance)
        return run_batch(self.instance, run.run_config, {}, again)

    def rerun_assets_from_failure(self, result: dg.JobExecutionResult) -> dg.JobExecutionResult:
        """The same for a run of assets; the UI copies the tags, the partition among them."""
        from kb_assets.jobs import asset_job

        run = self.instance.get_run_by_id(result.run_id)
        assert run is not None
        return dg.execute_job(
            dg.reconstructable(asset_job),
            instance=self.instance,
            tags={"dagster/partition": run.tags["dagster/partition"]},
            asset_selection=list(run.asset_selection or ()),
            reexecution_options=dg.ReexecutionOptions.from_failure(result.run_id, self.instance),
            raise_on_error=False,
        )

    def failure_message(self, result: dg.JobExecutionResult) -> str:
        """What the failed steps of a run said, causes included."""
        said = []
        for event in result.all_events:
            if event.is_step_failure:
                error = event.step_failure_data.error
                while error is not None:
                    said.append(error.message)
                    error = error.cause
        return "\n".join(said)

    def words(self, error: BaseException | None) -> str:
        """Messages of an exception and of all that led to it."""
        said = []
        while error is not None:
            said.append(str(error))
            error = error.__cause__ or error.__context__
        return "\n".join(said)

    def newest(self, stage: AnyStage, key: DocumentKey) -> dg.AssetMaterialization:
        """A document's newest materialisation at a stage."""
        found = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key(stage), asset_partitions=[str(key)]), limit=1
        )
        event = found.records[0].asset_materialization
        assert event is not None
        return event

    def log_step_start(self, run: dg.DagsterRun, step: str) -> None:
        """The event that a step writes when it starts."""
        from dagster._core.events import DagsterEvent

        self.instance.report_dagster_event(
            DagsterEvent("STEP_START", run.job_name, step_key=step), run.run_id
        )

    def everything_stored(self) -> str:
        """All event rows of Dagster's database as text."""
        from sqlalchemy import text

        with self.instance.event_log_storage.index_connection() as conn:
            rows = conn.execute(
                text(
                    "select event from event_logs union all "
                    "select evaluation_event from asset_check_executions"
                )
            ).fetchall()
        return "\n".join(row[0] for row in rows)

    def green(self, stage: AnyStage) -> set[str]:
        """Partitions that have materialisations and are not red."""
        return self.instance.get_materialized_partitions(asset_key(stage)) - self.red(stage)

    def red(self, stage: AnyStage) -> set[str]:
        """Partitions that the UI shows as failed."""
        from dagster._core.definitions.partitions.context import partition_loading_context
        from dagster._core.storage.partition_status_cache import (
            get_and_update_asset_status_cache_value,
        )

        from kb_resources.bindings.partitions import documents

        value = get_and_update_asset_status_cache_value(self.instance, asset_key(stage), documents)
        if value is None or not value.serialized_failed_partition_subset:
            return set()
        with partition_loading_context(dynamic_partitions_store=self.instance):
            subset = documents.deserialize_subset(value.serialized_failed_partition_subset)
            return set(subset.get_partition_keys())

    def checks(self, stage: AnyStage, name: str) -> dict[str, str]:
        """Newest status of a check by partition."""
        key = dg.AssetCheckKey(asset_key(stage), name)
        found = self.instance.event_log_storage.get_asset_check_partition_info([key])
        return {
            item.partition_key: item.latest_execution_status.value
            for item in found
            if item.partition_key
        }

    def states(self, keys: Sequence[DocumentKey]) -> dict[str, str]:
        """The ledger's states."""
        return {str(row.key): row.state for row in self.line.rows(keys)}


@pytest.fixture
def plant(instance: dg.DagsterInstance, line: Line, tmp_path: Path) -> Plant:
    # Not at the top: Dagster warns while the definitions are made, and collecting forbids that.
    from kb_assets.definitions import build_defs

    return Plant(instance, line, tmp_path / "sources", build_defs())
