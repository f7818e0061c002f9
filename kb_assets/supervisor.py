"""Keeps a few child processes alive, logs them to files, and stops them cleanly.

Belongs here: processes, on this machine, for one person. What does not: production, where systemd,
compose or Kubernetes does this (deploy/).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import psutil

from kb_resources.errors import UnavailableError

PID_FILE = "supervisor.pid"
STOP_TIMEOUT_S = 30.0
READY_TIMEOUT_S = 120.0
KEEP_LOG_BYTES = 10 * 2**20
MAX_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class Child:
    """A process to keep alive.

    Attributes:
        name: of its log file.
        command: argument list.
        ready: a file that appears once later children may start.
    """

    name: str
    command: tuple[str, ...]
    ready: Path | None = None


class Supervisor:
    """Runs children until told to stop by SIGTERM or SIGINT; restarts one that ends by itself."""

    def __init__(
        self,
        home: Path,
        children: Sequence[Child],
        environment: Mapping[str, str],
        logs: Path,
    ) -> None:
        self._home = home
        self._logs = logs
        self._children = list(children)
        self._environment = dict(environment)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._started: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._stopping = False

    def __enter__(self) -> Self:
        if running_supervisor(self._home) is not None:
            raise UnavailableError(
                f"A supervisor already runs for {self._home}.", next_step="Stop it with --stop."
            )
        self._logs.mkdir(parents=True, exist_ok=True)
        (self._home / PID_FILE).write_text(f"{os.getpid()} {psutil.Process().create_time()}")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._stop_all()
        finally:
            (self._home / PID_FILE).unlink(missing_ok=True)

    def run(self) -> None:
        """Start the children in order and keep them alive."""
        for child in self._children:
            if self._stopping:
                return
            self._start(child)
            self._wait_ready(child)
        while not self._stopping:
            for child in self._children:
                if self._running[child.name].poll() is not None and not self._stopping:
                    self._restart(child)
            time.sleep(0.5)

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._stopping = True

    def _start(self, child: Child) -> None:
        if child.ready is not None:
            child.ready.unlink(missing_ok=True)
        log = self._logs / f"{child.name}.log"
        if log.exists() and log.stat().st_size > KEEP_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as out:
            self._running[child.name] = subprocess.Popen(
                child.command,
                env=self._environment,
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # Its own group: a Ctrl-C in the terminal is the supervisor's to pass on.
                start_new_session=True,
            )
        self._started[child.name] = time.monotonic()

    def _wait_ready(self, child: Child) -> None:
        until = time.monotonic() + READY_TIMEOUT_S
        while child.ready is not None and not child.ready.exists() and not self._stopping:
            if time.monotonic() > until or self._running[child.name].poll() is not None:
                raise UnavailableError(
                    f"{child.name} did not start.",
                    next_step=f"Read {self._logs / child.name}.log.",
                )
            time.sleep(0.1)

    def _restart(self, child: Child) -> None:
        """Start it again, after a pause that doubles while it does not live long."""
        lived_s = time.monotonic() - self._started[child.name]
        pause = 1.0 if lived_s > MAX_PAUSE_S else min(self._pauses.get(child.name, 0.5) * 2, 60.0)
        self._pauses[child.name] = pause
        code = self._running[child.name].returncode
        print(f"{child.name} ended with {code}; starting it again in {pause:.0f} s", flush=True)
        until = time.monotonic() + pause
        while time.monotonic() < until and not self._stopping:
            time.sleep(0.1)
        if not self._stopping:
            self._start(child)

    def _stop_all(self) -> None:
        """In reverse order, one after the other, since the first serve the last."""
        for process in reversed(self._running.values()):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()
            _signal_group(process.pid, signal.SIGTERM)  # what it may have left behind


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def running_supervisor(home: Path) -> psutil.Process | None:
    """The supervisor of an instance, or None; a file left by a killed one does not count."""
    try:
        pid, created = (home / PID_FILE).read_text().split()
        process = psutil.Process(int(pid))
        same = abs(process.create_time() - float(created)) < 1.0
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        return None


def stop_supervisor(home: Path, timeout_s: float = 4 * STOP_TIMEOUT_S) -> bool:
    """Stop the supervisor and what it started; False when none ran.

    Raises:
        UnavailableError: it does not stop.
    """
    process = running_supervisor(home)
    if process is None:
        return False
    try:
        process.terminate()
        process.wait(timeout_s)
    except psutil.NoSuchProcess:  # it ended by itself just now
        return True
    except psutil.TimeoutExpired as error:
        raise UnavailableError(
            f"The supervisor (process {process.pid}) does not stop.",
            next_step="Look at its log, or end the process.",
        ) from error
    return True
