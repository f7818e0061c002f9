"""Which process works on a run, and is it still there?

Belongs here: the tag that `kb ingest` puts on its runs, what a code server of this machine says of
those that it started, asking the machine, and clearing up after the dead. What does not:
production, where the launcher of the platform watches its workers (run monitoring).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import dagster as dg
import psutil

from kb_assets.pools import free_slots
from kb_resources.bindings.events import bury_runs, launched_process

WORKER_TAG = "kb/worker"


def this_worker() -> str:
    """This process as a tag: host, process id, and when it was started."""
    return f"{socket.gethostname()} {os.getpid()} {psutil.Process().create_time():.2f}"


def clear_up(instance: dg.DagsterInstance) -> list[str]:
    """Mark runs as failed whose worker is gone, and free the pool slots of all that ended.

    Until then such a run keeps a place in the queue and its slot, and others wait for both.

    Returns:
        Ids of the runs that failed so.
    """
    buried = bury_runs(instance, lambda run: is_gone(instance, run))
    free_slots(instance)
    return buried


def is_gone(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether a run's worker was a process of this host that no longer exists."""
    if launched := launched_process(instance, run):
        pid, heard = launched
        return not _lives(pid, lambda created: created <= heard + 1.0)
    parts = run.tags.get(WORKER_TAG, "").split()
    # One that repeats another was given the tags of that one, and is no work of its worker's.
    if len(parts) != 3 or parts[0] != socket.gethostname() or run.parent_run_id is not None:
        return False
    pid, started = int(parts[1]), float(parts[2])
    return not _lives(pid, lambda created: abs(created - started) <= 1.0)


def _lives(pid: int, is_it: Callable[[float], bool]) -> bool:
    """Whether there is such a process; numbers come again, so its time of creation is asked."""
    try:
        return is_it(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return False
