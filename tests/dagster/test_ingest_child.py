"""`kb ingest` beside a Dagster instance: no run without work, a clean end when interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

ROOT = Path(__file__).parents[2]
TEXT = "# House {n}\n\nThe office in house {n} opens at eight and closes at five on working days.\n"


@pytest.fixture
def command(plant: Plant, tmp_path: Path) -> list[str]:
    folder = tmp_path / "sources"
    folder.mkdir()
    for n in range(3):
        (folder / f"house-{n}.md").write_text(TEXT.format(n=n))
    return [sys.executable, "-m", "kb.cli", "ingest", str(folder), "--scope", "acme"]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "KB_DAGSTER_DATABASE_URL": os.environ["KB_DAGSTER_URL"],
        "PYTHONWARNINGS": "ignore",
    }


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_a_run_is_recorded_for_what_changed_and_none_for_what_did_not(
    plant: Plant, command: list[str], tmp_path: Path
) -> None:
    assert run(command).returncode == 0
    assert plant.instance.get_runs_count() == 1
    unchanged = run(command)
    assert unchanged.returncode == 0
    assert "3 documents: 3 indexed" in unchanged.stdout
    assert plant.instance.get_runs_count() == 1
    (tmp_path / "sources" / "house-1.md").write_text(TEXT.format(n=11))
    assert run(command).returncode == 0
    assert plant.instance.get_runs_count() == 2
    batch_id = plant.instance.get_runs(limit=1)[0].tags["kb/batch"]
    assert len(plant.line.batch(batch_id)) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_canceled_and_said_to_be_so(
    plant: Plant, command: list[str], number: signal.Signals
) -> None:
    process = subprocess.Popen(
        command,
        env=environment(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    begun = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.SUCCESS])
    deadline = time.monotonic() + 280
    while not plant.instance.get_runs(begun):
        assert time.monotonic() < deadline, "no run began"
        time.sleep(0.1)
    process.send_signal(number)
    _, said = process.communicate(timeout=280)
    assert process.returncode in (0, 130)  # it may have been through before
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
    (found,) = plant.instance.get_runs()
    assert found.status in (dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.SUCCESS)
    again = run(command)
    assert again.returncode == 0
    assert "3 documents: 3 indexed" in again.stdout
