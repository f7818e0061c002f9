"""Threads that a request's blocking work runs on.

Belongs here: how much runs at once and how long the queue may get. What does not: the work. The
event loop only moves bytes: queries, embedding and files go through a pool sized to the cores, so
that a burst waits in line instead of making every search slow (Little's law).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from kb_resources.errors import UnavailableError

P = ParamSpec("P")
T = TypeVar("T")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """A pool of threads with a bounded queue.

    Args:
        name: of the threads.
        size: threads.
        max_waiting: calls that may wait beside those that run.
    """

    def __init__(self, name: str, size: int, *, max_waiting: int = 1000) -> None:
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._limit = size + max_waiting
        self._inside = 0

    @property
    def inside(self) -> int:
        """Calls that run or wait."""
        return self._inside

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` on a thread and give its result.

        Raises:
            UnavailableError: too many wait already (`busy`).
        """
        if self._inside >= self._limit:
            raise UnavailableError(
                "Too many requests wait already.", next_step="Try again shortly.", code="busy"
            )
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, partial(work, *args, **kwargs)
            )
        finally:
            self._inside -= 1

    def close(self) -> None:
        """Wait for what runs and drop what waits."""
        self._threads.shutdown(wait=True, cancel_futures=True)
