"""A few connections kept open for reuse by threads.

psycopg_pool connects in background threads and retries there with growing pauses, so that a
database that is away shows as a slow timeout, and one that is back is noticed late. Here the
caller's thread connects, gets the server's own words at once, and the next call tries anew.
Belongs here: lending and checking connections. What does not: what they are used for (`pool`).
See https://www.psycopg.org/psycopg3/docs/advanced/pool.html for the pool this is not.
"""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from kb_resources.errors import UnavailableError

Connection = psycopg.Connection[tuple[object, ...]]

ASK_AFTER_S = 5.0
"""Unused for longer than this, a connection is asked; something on the way may have dropped it."""


class ConnectionPool:
    """Lends autocommitting connections, the most recently used first.

    Args:
        connect: opens a connection; what it raises reaches the borrower.
        max_size: connections lent at the same time at most.
        max_idle_s: how long an unused connection is kept.
    """

    def __init__(
        self, connect: Callable[[], Connection], *, max_size: int, max_idle_s: float = 300.0
    ) -> None:
        self._connect = connect
        self._max_size = max_size
        self._max_idle_s = max_idle_s
        self._slots = threading.BoundedSemaphore(max_size)
        self._guard = threading.Lock()
        self._idle: deque[tuple[float, Connection]] = deque()
        self._closed = False

    @contextmanager
    def connection(self, *, timeout_s: float) -> Iterator[Connection]:
        """Borrow a connection that the server has not closed.

        Args:
            timeout_s: how long to wait for one while all are lent.

        Raises:
            UnavailableError: all stayed lent (`pool_exhausted`).
        """
        if not self._slots.acquire(timeout=timeout_s):
            raise UnavailableError(
                f"All {self._max_size} connections stayed busy for {timeout_s:g} s.",
                next_step="Try again, or allow more connections.",
                code="pool_exhausted",
            )
        try:
            conn = self._take() or self._connect()
            try:
                yield conn
            finally:
                self._give_back(conn)
        finally:
            self._slots.release()

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        with self._guard:
            self._closed = True
            idle = [conn for _, conn in self._idle]
            self._idle.clear()
        for conn in idle:
            conn.close()

    def _take(self) -> Connection | None:
        while True:
            with self._guard:
                if not self._idle:
                    return None
                since, conn = self._idle.pop()
            if _stands(conn, ask=time.monotonic() - since > ASK_AFTER_S):
                return conn
            conn.close()  # a new connection says how the server is

    def _give_back(self, conn: Connection) -> None:
        stale: list[Connection] = []
        now = time.monotonic()
        with self._guard:
            if self._closed or conn.info.transaction_status != TransactionStatus.IDLE:
                stale.append(conn)
            else:
                self._idle.append((now, conn))
            while self._idle and now - self._idle[0][0] > self._max_idle_s:
                stale.append(self._idle.popleft()[1])
        for old in stale:
            old.close()


def _stands(conn: Connection, *, ask: bool) -> bool:
    """Whether a connection may be used; a server that ends one says so on the socket unasked."""
    try:
        told = select.poll()
        told.register(conn.fileno(), select.POLLIN)
        if ask or told.poll(0):
            conn.execute("")
    except (psycopg.OperationalError, OSError):
        return False
    return True
