"""Which documents one child may read in turn, and the children that wait for the next one.

A child of its own costs a small text five times what reading it does: the fork, the pages that it
writes to, its end. What it guards against is code that a document can take over, and code that runs
away. Texts without markup are read by Python code and the standard library alone, which a text
cannot take over; and a child that gives no document is ended, and what it refused or did not
answer for is read again by one of its own, whose answer counts. So neither result nor refusal
depends on who was read before. Belongs here: who may share. What does not: talking with children
(`child`).
"""

from __future__ import annotations

import threading

from kb_resources.parse.sandbox.child import Child

NEXT_WALL_S = 1.0
"""Seconds that a document gets in a child that has read others; the largest takes a tenth."""
_MOST_BYTES = 64 * 1024
_MOST_DOCUMENTS = 50
_MOST_CPU_S = 0.25  # where one is slow, the next often is, and would be read twice
_MOST_RSS_BYTES = 256 * 1024 * 1024
# Read without any library of others, where nothing in them is markup.
_PLAIN = frozenset(
    (
        *("text/plain", "text/csv", "text/tab-separated-values", "application/json"),
        # Its HTML, which lxml reads, is then written by markdown-it, not by an author.
        "text/markdown",
    )
)


def may_share(data: bytes, media_type: str) -> bool:
    """Whether a document may be read by a child that has read others, and by which others are."""
    return media_type in _PLAIN and len(data) <= _MOST_BYTES and b"<" not in data


def may_stay(child: Child) -> bool:
    """Whether a child that answered is good for another document."""
    return (
        child.read < _MOST_DOCUMENTS
        and child.cpu_s < _MOST_CPU_S
        and child.max_rss_bytes < _MOST_RSS_BYTES
    )


class Idle:
    """Children that wait for their next document, by type. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Child]] = {}
        self._closed = False

    def take(self, media_type: str) -> Child | None:
        """One that read this type before, for the caller alone."""
        with self._lock:
            waiting = self._waiting.get(media_type)
            return waiting.pop() if waiting else None

    def keep(self, media_type: str, child: Child) -> None:
        """Have a child wait; one that answered when the pool had closed is let go."""
        with self._lock:
            if self._closed:
                child.channel.close()
            else:
                self._waiting.setdefault(media_type, []).append(child)

    def clear(self) -> None:
        """Let all go: their nursery ends, or has ended, them."""
        with self._lock:
            for waiting in self._waiting.values():
                for child in waiting:
                    child.channel.close()
            self._waiting.clear()

    def close(self) -> None:
        """Let all go, and whoever comes later."""
        self._closed = True
        self.clear()
