"""An installation that faults are done to; each test file has its own way of doing them.

Belongs here: what several of them look at. What does not: the line's own bench.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg

from tests.integration.line.conftest import bench, models_dir, settings

__all__ = ["bench", "models_dir", "settings"]

_BUSY = """
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
"""


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
    """Return when the condition holds; the limit is for a machine that hangs."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


def wait_until_idle(dsn: str) -> None:
    """Until the server has noticed that a killed client is gone, and rolled back."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        wait_for(lambda: conn.execute(_BUSY).fetchone() == (0,), "a backend is busy")
