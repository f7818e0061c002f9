"""Dagster's real daemon and code server, killed again and again while files drop: each taken once.

`kill -9` comes at a moment of the daemon's doing: it is alive, files are registered, a run is asked
for, documents are published. Every second time the code server dies with it, where sensors are
evaluated, and every fourth time the workers of the runs that it started.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import psutil
import psycopg
import pytest

from tests.dagster.conftest import ROOT, dagster_template, environment, instance
from tests.dagster.test_workers import _INDEXED_TWICE, _SUMS, TEXT
from tests.faults.conftest import wait_for

__all__ = ["dagster_template", "environment", "instance"]
pytestmark = pytest.mark.filterwarnings("default")

_COUNTS = """
    select count(*), count(*) filter (where state = 'indexed') from kb.document
"""
RUN_WORKER = "multiprocessing.spawn"


class Service:
    """A process of Dagster's and what it starts, in a session of their own."""

    def __init__(self, log: Path, *command: str) -> None:
        self._log = log
        self._command = [sys.executable, "-W", "ignore", "-m", *command]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command, stdout=out, stderr=out, cwd=ROOT, start_new_session=True
            )

    def kill(self, *, workers: bool = True) -> None:
        """At once, as the kernel does when memory is short; or without the workers of runs."""
        assert self._process is not None
        try:
            tree = [psutil.Process(self._process.pid)]
            tree += tree[0].children(recursive=True)
        except psutil.NoSuchProcess:
            tree = []
        for process in tree:
            try:
                if workers or RUN_WORKER not in " ".join(process.cmdline()):
                    process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        self._process.wait()


class Plant:
    """A dropzone with the daemon and the code server that look after it."""

    def __init__(self, instance: dg.DagsterInstance, folder: Path, dropzone: Path) -> None:
        self.instance = instance
        self._dropzone = dropzone
        self._dsn = os.environ["KB_DATABASE_URL"]
        self._socket = folder / "code.sock"
        workspace = folder / "workspace.yaml"
        workspace.write_text(
            f"load_from:\n  - grpc_server: {{socket: {self._socket}, location_name: kb}}\n"
        )
        self.code = Service(
            folder / "code.log", "dagster", "code-server", "start", "--socket", str(self._socket),
            "--module-name", "kb_assets.definitions", "--location-name", "kb",
        )  # fmt: skip
        self.daemon = Service(
            folder / "daemon.log", "dagster._daemon", "run", "--workspace", str(workspace)
        )
        self.begun = 0.0

    def start(self, *, code: bool) -> None:
        if code:
            self._socket.unlink(missing_ok=True)
            self.code.start()
            wait_for(self._socket.exists, "the code server")
        self.begun = time.time()
        self.daemon.start()

    def drop(self, numbers: range) -> None:
        for n in numbers:
            path = self._dropzone / ("acme" if n % 3 else "beta") / f"locker-{n}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(TEXT.format(n=n, m=n * 7 % 13))

    def counts(self) -> tuple[int, ...]:
        """Documents registered, documents published, runs asked for."""
        with psycopg.connect(self._dsn) as conn:
            row = conn.execute(_COUNTS).fetchone()
            assert row is not None
            return (*map(int, row), self.instance.get_runs_count())

    def alive(self) -> bool:
        beats = self.instance.get_daemon_heartbeats().values()
        return any(beat.timestamp > self.begun for beat in beats)

    def ask(self, query: str) -> tuple[object, ...]:
        with psycopg.connect(self._dsn) as conn:
            row = conn.execute(query.encode()).fetchone()
        assert row is not None
        return row


@pytest.fixture
def plant(instance: dg.DagsterInstance, environment: Path, open_folder: Path) -> Iterator[Plant]:
    made = Plant(instance, open_folder, environment.parent / "dropzone")
    made.start(code=True)
    yield made
    made.daemon.kill()
    made.code.kill()


def restart_often(plant: Plant, restarts: int, files: range, seed: int) -> dict[str, int]:
    """Returns how many of the deaths came at each kind of moment."""
    seeded = random.Random(seed)
    each = len(files) // restarts
    died: dict[str, int] = {}
    for place in range(restarts):
        registered, published, asked_for = plant.counts()
        plant.drop(files[place * each : (place + 1) * each])
        moments: dict[str, Callable[[], bool]] = {
            "alive": plant.alive,
            "registered": lambda before=registered: plant.counts()[0] > before,  # type: ignore[misc]
            "published": lambda before=published: plant.counts()[1] > before,  # type: ignore[misc]
            "asked for": lambda before=asked_for: plant.counts()[2] > before,  # type: ignore[misc]
        }
        moment = seeded.choice(list(moments))
        wait_for(moments[moment], moment, timeout_s=600)
        died[moment] = died.get(moment, 0) + 1
        plant.daemon.kill()
        if place % 2:
            plant.code.kill(workers=place % 4 == 3)
        plant.start(code=bool(place % 2))
    wait_for(lambda: plant.counts()[1] == len(files), "the last documents", timeout_s=1500)
    return died


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.requirement("P-70", "B-12", "O-10")
@pytest.mark.parametrize("part", range(2))
def test_a_thousand_files_are_each_taken_once_whatever_dies_meanwhile(
    plant: Plant, part: int
) -> None:
    """Five hundred files and ten deaths in each part."""
    died = restart_often(plant, 10, range(part * 500, part * 500 + 500), seed=part)
    print(f"the daemon died when: {died}; {plant.counts()[2]} runs")
    assert plant.ask(_SUMS) == (*[500] * 6, 0)
    assert plant.ask(_INDEXED_TWICE) == (0,)
