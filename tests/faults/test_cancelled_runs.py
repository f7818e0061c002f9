"""A run that is told to stop leaves each document as it was or as it should be: no half batch.

A real `kb ingest` publishes second editions and is interrupted once so many stages are through. The
short forms are `tests/e2e/test_command_line.py` and `tests/dagster/test_ingest_child.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psycopg
import pytest

from kb_resources.settings import as_environment
from tests.faults.conftest import wait_for, wait_until_idle
from tests.faults.test_killed_stages import Trial
from tests.integration.line.conftest import ROOT, Bench

DOCUMENTS = 16
_THROUGH = """
    select count(*) from kb.stage_result r join kb.version v using (version_key) where v.version = 2
"""


def through(conn: psycopg.Connection[tuple[object, ...]]) -> int:
    """How many stages of second editions are through, in all scopes."""
    row = conn.execute(_THROUGH).fetchone()
    assert row is not None
    return int(str(row[0]))


def interrupted(bench: Bench, trial: Trial, at: int, number: signal.Signals) -> int:
    """`kb ingest` over the second editions, told to stop once `at` stages are through."""
    folder = bench.folder / trial.scope
    with psycopg.connect(bench.settings.database_url, autocommit=True) as conn:
        process = subprocess.Popen(
            [sys.executable, "-m", "kb.cli", "ingest", str(folder), "--scope", trial.scope],
            env=os.environ | as_environment(bench.settings) | {"PYTHONWARNINGS": "ignore"},
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(
            lambda: process.poll() is not None or through(conn) >= at,
            "stages of the second edition",
        )
        process.send_signal(number)
        _, said = process.communicate(timeout=240)
    assert "Traceback" not in said, said
    return process.returncode


def cancel(bench: Bench, points: list[int]) -> None:
    twin = Trial(bench, "twin", DOCUMENTS)
    bench.line.run_all(twin.keys)
    second, kept = twin.look(), twin.kept()
    with psycopg.connect(bench.settings.database_url) as conn:
        before = through(conn)
    for round_number, at in enumerate(points):
        number = (signal.SIGINT, signal.SIGTERM)[round_number % 2]
        trial = Trial(bench, f"cancelled-{round_number}", DOCUMENTS)
        assert interrupted(bench, trial, before + at, number) in (0, 130, 143)
        wait_until_idle(bench.settings.database_url)
        for now, old, new in zip(trial.look(), trial.first, second, strict=True):
            assert now in (old, new)
        bench.line.run_all(trial.keys)
        assert trial.look() == second
        assert trial.kept() == kept
        assert trial.left_behind() == [(0,)]
        before += DOCUMENTS * 8


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.requirement("B-28")
def test_an_ingest_interrupted_in_each_stage_leaves_whole_documents(bench: Bench) -> None:
    cancel(bench, [DOCUMENTS * stage + DOCUMENTS // 3 for stage in range(8)])
