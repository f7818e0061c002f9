"""The reference store's list of embedding work, and its outbox.

Belongs here: the contract's methods about vectors that are waited for and about events. What does
not: publishing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from kb_resources.store.checks import (
    cause,
    check_consumer,
    check_rows,
    check_vectors,
    check_vectors_count,
    lost,
    no_consumer,
    no_document,
    not_held,
)
from kb_resources.store.contract import scope_of
from kb_resources.store.memory_base import MemoryBase
from kb_resources.store.memory_rows import Document
from kb_resources.store.records import Event, Missing, Vector, Work


class MemoryWork(MemoryBase):
    """Vectors that are waited for."""

    def missing(self, document_id: str, *, scope: str | None = None) -> tuple[Missing, ...]:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            document = self._document(scope_of(scope, self._pinned), document_id)
            return tuple(document.newest.missing()) if document else ()

    def add_vectors(
        self, document_id: str, vectors: Mapping[str, Vector], *, scope: str | None = None
    ) -> int:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_vectors_count(len(vectors), self._limits)
        check_vectors(vectors, self._space)
        with self._guard:
            document = self._document(name, document_id)
            if document is None:
                raise no_document(document_id, name)
            for row in document.newest.rows:
                if row.vector is None and row.chunk.embed_hash in vectors:
                    row.vector = vectors[row.chunk.embed_hash]
            waiting = document.newest.waiting()
            if not waiting and document.work is not None and document.work.holder is None:
                document.work = None
            return waiting

    def work(self, document_id: str, *, scope: str | None = None) -> Work | None:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            document = self._document(scope_of(scope, self._pinned), document_id)
            return document.progress() if document else None

    def works(self, *, scope: str | None = None, limit: int = 100) -> tuple[Work, ...]:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_rows(limit, None, self._limits)
        with self._guard:
            found = [
                work
                for each in self._in_order(name)
                if not each.removed and (work := each.progress()).state != "ready"
            ]
        return tuple(found[:limit])

    def claim(
        self, *, holder: str, lease_s: float = 300.0, scope: str | None = None
    ) -> Work | None:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        with self._guard:
            for document in self._in_order(name):
                if not document.removed and document.progress().state == "pending":
                    work = document.work
                    assert work is not None  # noqa: S101 - pending work has a row
                    work.state, work.holder = "processing", holder
                    work.held_until = self._clock() + timedelta(seconds=lease_s)
                    return document.progress()
        return None

    def settle(
        self,
        document_id: str,
        *,
        holder: str,
        error: str = "",
        attempts: int = 3,
        scope: str | None = None,
    ) -> Work:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        with self._guard:
            document = self._scope(name).documents.get(document_id)
            work = document.work if document else None
            if document is None or work is None or work.holder != holder:
                raise not_held(document_id, holder)
            self._give_back(document, error, attempts)
            return document.progress()

    def requeue(self, document_id: str, *, scope: str | None = None) -> bool:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            document = self._scope(scope_of(scope, self._pinned)).documents.get(document_id)
            work = document.work if document else None
            if work is None or work.state != "failed":
                return False
            work.state, work.attempts, work.error = "pending", 0, ""
            return True

    def recover(self, *, scope: str | None = None, attempts: int = 3) -> tuple[Work, ...]:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        with self._guard:
            now, found = self._clock(), []
            for document in self._in_order(name):
                work = document.work
                if work is None or work.held_until is None or work.held_until > now:
                    continue
                self._give_back(document, lost(work.holder or ""), attempts)
                found.append(document.progress())
            return tuple(found)

    def _give_back(self, document: Document, error: str, attempts: int) -> None:
        work = document.work
        assert work is not None  # noqa: S101 - both callers looked
        work.holder = work.held_until = None
        if not document.newest.waiting():
            document.work = None
        elif error:
            work.attempts, work.error = work.attempts + 1, cause(error)
            work.state = "failed" if work.attempts >= attempts else "pending"
        else:
            work.state = "pending"


class MemoryOutbox(MemoryBase):
    """Changes kept for consumers."""

    def subscribe(self, consumer: str, *, scope: str | None = None) -> None:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            held = self._scope(scope_of(scope, self._pinned))
            held.outbox.setdefault(check_consumer(consumer), {})

    def unsubscribe(self, consumer: str, *, scope: str | None = None) -> None:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            self._scope(scope_of(scope, self._pinned)).outbox.pop(check_consumer(consumer), None)

    def events(
        self, consumer: str, *, scope: str | None = None, limit: int = 100
    ) -> tuple[Event, ...]:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_rows(limit, None, self._limits)
        with self._guard:
            waiting = self._scope(name).outbox.get(check_consumer(consumer))
            if waiting is None:
                raise no_consumer(consumer)
            return tuple(waiting.values())[:limit]

    def acknowledge(
        self, consumer: str, event_ids: Iterable[str], *, scope: str | None = None
    ) -> int:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            held = self._scope(scope_of(scope, self._pinned))
            waiting = held.outbox.get(check_consumer(consumer), {})
            return sum(waiting.pop(each, None) is not None for each in set(event_ids))
