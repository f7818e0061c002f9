"""The nightly asset: partitions follow the ledger, differences show with what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from kb_resources.bindings.partitions import add_documents
from kb_resources.bindings.partitions import documents as partitions_def
from kb_resources.compose_erasing import eraser
from kb_resources.errors import UnavailableError
from kb_resources.model import DocumentKey
from kb_resources.settings import load_settings
from kb_resources.stages import removal
from kb_resources.store import erasure

if TYPE_CHECKING:
    from kb_resources.stages.erase import Forgotten
    from tests.dagster.conftest import Plant

TEXT = "# {0}\n\nThe {0} was seen near the harbour on the second of May 2024.\n"


def _run(plant: Plant) -> dg.ExecuteInProcessResult:
    from kb_assets.reconcile import reconciliation

    return dg.materialize([reconciliation], instance=plant.instance, resources={"line": plant.line})


@pytest.mark.requirement("O-20")
def test_partitions_follow_the_ledger(plant: Plant) -> None:
    keys = plant.register({"gull.md": TEXT.format("gull"), "tern.md": TEXT.format("tern")})
    plant.line.run_all(keys)
    add_documents(plant.instance, [keys[0], DocumentKey("acme", "nobody-knows-it")])
    result = _run(plant)
    assert result.success
    known = plant.instance.get_dynamic_partitions(str(partitions_def.name))
    assert set(known) == {str(key) for key in keys}
    [event] = result.get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["missing_partition"].value == 1
    assert metadata["stray_partition"].value == 1
    assert metadata["left"].value == 0


def test_what_cannot_be_mended_fails_the_check_with_what_to_do(
    plant: Plant, tmp_path: Path
) -> None:
    [key] = plant.register({"gull.md": TEXT.format("gull")})
    plant.line.run_all([key])
    add_documents(plant.instance, [key])
    for blob in (tmp_path / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    (plant.folder / "acme" / "gull.md").unlink()
    result = _run(plant)
    [check] = result.get_asset_check_evaluations()
    assert not check.passed
    assert "backup" in str(check.metadata["which"].value)


@pytest.mark.requirement("O-12")
def test_an_erasure_that_a_crash_cut_short_is_finished_in_the_night(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was emptied, then Dagster's storage was away: the asset ends what is left."""
    [key] = plant.register({"gull.md": TEXT.format("gull")})
    assert plant.batch([key]).success
    url = str(plant.instance.event_log_storage.postgres_url)  # type: ignore[attr-defined]
    assert "gull" in plant.everything_stored()

    def away(_what: Forgotten) -> Mapping[str, int]:
        raise UnavailableError("Dagster's storage is away.")

    cut_short = eraser(load_settings(), plant.line, dagster=away, dagster_here=False)
    with pytest.raises(UnavailableError):
        cut_short.erase(key, actor="cli:ana", reason="asked")
    monkeypatch.setenv(
        "KB_DAGSTER_DATABASE_URL", "postgresql+psycopg2://nobody@/none?host=/nowhere"
    )
    first = _run(plant)
    [check] = first.get_asset_check_evaluations()
    assert not check.passed
    assert "unfinished_erasure" in str(check.metadata["which"].value)

    monkeypatch.setenv("KB_DAGSTER_DATABASE_URL", url)
    second = _run(plant)
    [check] = second.get_asset_check_evaluations()
    assert check.passed
    [event] = second.get_asset_materialization_events()
    assert event.materialization.metadata["unfinished_erasure"].value == 1
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        [made] = erasure.certificates(conn, scope="acme")
    assert made.finished_at is not None
    assert made.counts["dagster"]["event_logs"] >= 8
    assert str(key) not in plant.everything_stored()


@pytest.mark.requirement("P-36")
def test_what_no_batch_was_about_reaches_the_git_export_in_the_night(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    monkeypatch.setenv("KB_EXPORT_GIT", str(repository))
    [key] = plant.register({"gull.md": TEXT.format("gull")})
    assert plant.batch([key]).success
    folder = repository / key.scope / key.document_id
    assert "harbour" in (folder / "document.md").read_text()
    removal.remove(plant.line.capabilities, key, actor="test", reason="gone at the source")
    result = _run(plant)
    [event] = result.get_asset_materialization_events()
    assert event.materialization.metadata["git_export"].value == 1
    assert not folder.exists()


@pytest.mark.requirement("P-36")
def test_each_batch_is_one_commit_and_a_failing_git_fails_the_step(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository"
    monkeypatch.setenv("KB_EXPORT_GIT", str(repository))
    keys = plant.register({f"{name}.md": TEXT.format(name) for name in ("gull", "tern", "auk")})
    assert plant.batch(keys).success
    assert plant.batch(keys).success
    assert commits(repository) == 1
    (repository / ".git" / "HEAD").unlink()
    [more] = plant.register({"skua.md": TEXT.format("skua")})
    result = plant.batch([more])
    assert not result.success
    assert "git" in plant.failure_message(result)
    assert plant.states([more])[str(more)] == "indexed"


def commits(repository: Path) -> int:
    """Commits of a repository."""
    command = ["git", "-c", f"safe.directory={repository}", "rev-list", "--count", "HEAD"]
    return int(subprocess.check_output(command, cwd=repository))
