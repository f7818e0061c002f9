"""Lets a query overtake an ingest that runs in the same process.

Belongs here: the order in which batches start. What does not: the batches themselves.
The scheme is a readers-writers lock's writer preference, with a bound so that bulk never starves
(Courtois, Heymans, Parnas 1971).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class QueryFirst:
    """Holds bulk batches back while a query is in work.

    A query never waits: it starts at once beside the batches that already run, at most one for
    each thread. A bulk batch waits until no query is in work, at most `patience_s`.
    """

    def __init__(
        self, patience_s: float = 0.5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Set up with no query in work.

        Args:
            patience_s: longest wait of one bulk batch in seconds.
            clock: monotonic seconds.
        """
        self._patience_s = patience_s
        self._clock = clock
        self._queries = 0
        self._idle = threading.Condition()

    @contextmanager
    def query(self) -> Iterator[None]:
        """Around the work of a query."""
        with self._idle:
            self._queries += 1
        try:
            yield
        finally:
            with self._idle:
                self._queries -= 1
                if not self._queries:
                    self._idle.notify_all()

    def before_bulk_batch(self) -> None:
        """Called before each bulk batch; returns when it may start."""
        deadline = self._clock() + self._patience_s
        with self._idle:
            while self._queries and (left := deadline - self._clock()) > 0:
                self._idle.wait(left)
