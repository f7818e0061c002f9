"""Finding and ending the embedded server's processes.

A number in a PID file proves nothing after a crash or in a new container. A process is ours when
the data folder's owner runs it and its command line names the folder (the server itself) or the
folder's cluster name (its children, whose titles PostgreSQL sets); command lines are readable
where /proc/PID/cwd is not. Belongs here: the process table. What does not: starting (`server`).
See https://www.postgresql.org/docs/current/server-shutdown.html.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_GRACE_S = 5.0


def cluster_name(data: Path) -> str:
    """Name that PostgreSQL shows in the titles of this data folder's processes."""
    return f"kb-{hashlib.sha256(os.fsencode(data)).hexdigest()[:12]}"


def postmaster_pid(data: Path) -> int | None:
    """PID of the live server of a data folder; None when none lives or the file is stale."""
    pid = _recorded_pid(data)
    return pid if pid is not None and _is_ours(pid, data) else None


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not, whoever forgot to reap it."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def clear_remains(data: Path, socket_dir: Path) -> None:
    """After the server died: end the processes it left and remove lock files that would mislead.

    A backend that was busy when its server was killed still holds the shared memory, and the next
    server refuses to start beside it. A PID file whose process is gone is left to PostgreSQL,
    which knows best; one whose PID is a zombie's, or another program's by now, would stop it.

    Raises:
        PermissionError: a process left over belongs to another account.
    """
    leftovers = list(_ours(data))
    if leftovers:
        _end(leftovers)
    pid = _recorded_pid(data)
    if pid is None or _exists(pid):
        (data / "postmaster.pid").unlink(missing_ok=True)
    for lock in socket_dir.glob(".s.PGSQL.*"):
        lock.unlink(missing_ok=True)


def stop_process(pid: int, *, timeout_s: float, orderly: bool = True) -> bool:
    """Stop a server; whether it ended.

    Args:
        pid: the server's process.
        timeout_s: time for an orderly shutdown, and again for an immediate one after it.
        orderly: False: immediate at once, for data that is about to be deleted.
    """
    for number in (signal.SIGINT, signal.SIGQUIT)[not orderly :]:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True
        if wait_until(lambda: not is_alive(pid), timeout_s=timeout_s):
            return True
    return False


def wait_until(condition: Callable[[], bool], *, timeout_s: float) -> bool:
    """Poll a condition, at first every 2 ms, later every 50; whether it came true in time."""
    deadline = time.monotonic() + timeout_s
    pause = 0.002
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    return True


def _recorded_pid(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_bytes().partition(b"\n")[0])
    except (OSError, ValueError):
        return None


def _exists(pid: int) -> bool:
    """Whether the number is taken, be it by a zombie, as PostgreSQL looks at it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_ours(pid: int, data: Path) -> bool:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if process.uids().effective != data.stat().st_uid:
            return False
        words = process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return False
    # Before it becomes the server, the shell that launches it has the same words.
    is_server = str(data) in words and any(Path(word).name == "postgres" for word in words)
    return is_server or " ".join(words).startswith(f"postgres: {cluster_name(data)}: ")


def _ours(data: Path) -> Iterator[psutil.Process]:
    import psutil

    for process in psutil.process_iter():
        if _is_ours(process.pid, data):
            yield process


def _end(processes: list[psutil.Process]) -> None:
    """Quit at once, which is safe: the write-ahead log brings every commit back."""
    import psutil

    for number in (signal.SIGQUIT, signal.SIGKILL):
        for process in processes:
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        if wait_until(
            lambda: not any(is_alive(process.pid) for process in processes), timeout_s=_GRACE_S
        ):
            return
