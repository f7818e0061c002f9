"""Which process works on a run, and is it still there?

Belongs here: the tag that `kb ingest` puts on its runs, and asking the machine. What does not:
production, where the launcher of the platform watches its workers (run monitoring).
"""

from __future__ import annotations

import os
import socket

import dagster as dg
import psutil

WORKER_TAG = "kb/worker"


def this_worker() -> str:
    """This process as a tag: host, process id, and when it was started."""
    return f"{socket.gethostname()} {os.getpid()} {psutil.Process().create_time():.2f}"


def is_gone(run: dg.DagsterRun) -> bool:
    """Whether the run names a worker of this host that no longer exists."""
    parts = run.tags.get(WORKER_TAG, "").split()
    if len(parts) != 3 or parts[0] != socket.gethostname():
        return False
    try:
        created = psutil.Process(int(parts[1])).create_time()
    except (psutil.NoSuchProcess, ValueError):
        return True
    return bool(abs(created - float(parts[2])) > 1.0)
