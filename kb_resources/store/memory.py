"""The reference store: everything in dictionaries, every rule in plain sight.

Belongs here: what the contract means, written so that it can be read. What does not: speed, and
surviving the process. Tests hold the Postgres store against it, operation by operation.
Ranking is in `memory_search`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kb_resources import lexical
from kb_resources.errors import PolicyError
from kb_resources.model import validate_audience
from kb_resources.store import memory_search
from kb_resources.store.checks import (
    check_edition,
    check_rows,
    check_search,
    check_storable,
    confirmed,
)
from kb_resources.store.contract import scope_of
from kb_resources.store.memory_base import ScopeData
from kb_resources.store.memory_rows import Document
from kb_resources.store.memory_work import MemoryOutbox, MemoryWork
from kb_resources.store.records import (
    DocumentPage,
    Edition,
    Found,
    PassageRecord,
    Published,
    StoredDocument,
    Vector,
)
from kb_resources.store.scopes import require_open


class MemoryStore(MemoryWork, MemoryOutbox):
    """`contract.KnowledgeStore` in memory. Threads may share it; see `MemoryBase` for arguments."""

    def put(self, edition: Edition, *, scope: str | None = None) -> Published:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_storable(edition)
        check_edition(edition, self._space, self._limits)
        with self._guard:
            held = self._scope(name)
            require_open(held.scope)
            document = held.documents.get(edition.document_id)
            if document is None:
                document = Document(edition.document_id, next(self._numbers))
            if document.removed:
                raise PolicyError(
                    "The document is removed and stays so until somebody restores it.",
                    next_step="Bring it back with kb documents restore.",
                    code="gate",
                )
            known = self._known_vectors(held)
            held.documents[edition.document_id] = document
            return self._publish(name, held, document, edition, known)

    def get(
        self, document_id: str, *, scope: str | None = None, audiences: Sequence[str] | None = ()
    ) -> StoredDocument | None:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            held = self._scope(scope_of(scope, self._pinned))
            document = held.documents.get(document_id)
            if document is None or not document.open_to(audiences):
                return None
            return document.stored(self._clock())

    def documents(
        self,
        *,
        scope: str | None = None,
        audiences: Sequence[str] | None = (),
        limit: int = 100,
        cursor: str | None = None,
    ) -> DocumentPage:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        before = check_rows(limit, cursor, self._limits)
        with self._guard:
            held, now = self._scope(name), self._clock()
            rows = [
                (document.number, stored)
                for document in sorted(
                    held.documents.values(), key=lambda each: each.number, reverse=True
                )
                if (before is None or document.number < before)
                and document.open_to(audiences)
                and (stored := document.stored(now)) is not None
            ]
        page = rows[:limit]
        more = str(page[-1][0]) if len(rows) > limit else None
        return DocumentPage(tuple(stored for _, stored in page), more)

    def count(self, *, scope: str | None = None) -> tuple[int, int]:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            held, now = self._scope(scope_of(scope, self._pinned)), self._clock()
            found = [stored for each in held.documents.values() if (stored := each.stored(now))]
        return len(found), sum(stored.passages for stored in found)

    def set_audiences(
        self, document_id: str, audiences: Sequence[str], *, scope: str | None = None
    ) -> bool:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        wanted = tuple(sorted({validate_audience(each) for each in audiences}))
        with self._guard:
            held = self._scope(name)
            document = held.documents.get(document_id)
            if document is None:
                return False
            changed, document.audiences, document.decided = (
                document.audiences != wanted, wanted, True,
            )  # fmt: skip
            if changed and document.published() is not None:
                self._announce(name, held, document)
            return True

    def remove(self, document_id: str, *, scope: str | None = None) -> bool:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        with self._guard:
            held = self._scope(name)
            document = held.documents.get(document_id)
            if document is None or document.removed:
                return False
            ended = document.end(self._clock())
            document.removed = True
            if ended:
                self._announce(name, held, document)
            return True

    def restore(self, document_id: str, *, scope: str | None = None) -> bool:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        with self._guard:
            held = self._scope(name)
            document = held.documents.get(document_id)
            if document is None or not document.removed:
                return False
            document.removed = False
            document.begin(document.latest, self._clock())
            self._announce(name, held, document)
            return True

    def remove_all(self, *, confirm: str, scope: str | None = None) -> int:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        confirmed(confirm, name)
        with self._guard:
            return sum(
                self.remove(document_id, scope=name)
                for document_id in list(self._scope(name).documents)
            )

    def passage(
        self, passage_id: str, *, scope: str | None = None, audiences: Sequence[str] | None = ()
    ) -> PassageRecord | None:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            held, now = self._scope(scope_of(scope, self._pinned)), self._clock()
            for document in held.documents.values():
                version = document.at(now) if document.open_to(audiences) else None
                for row in version.rows if version else ():
                    if version and row.chunk.passage_id == passage_id:
                        return document.record(version, row)
        return None

    def passages(
        self,
        document_id: str,
        *,
        scope: str | None = None,
        audiences: Sequence[str] | None = (),
        under: Sequence[str] = (),
    ) -> tuple[PassageRecord, ...]:
        """See `contract.KnowledgeStore`."""
        with self._guard:
            held = self._scope(scope_of(scope, self._pinned))
            document = held.documents.get(document_id)
            version = document.at(self._clock()) if document else None
            if document is None or version is None or not document.open_to(audiences):
                return ()
            return tuple(
                document.record(version, row)
                for row in version.rows
                if row.chunk.heading_path[: len(under)] == tuple(under)
            )

    def search(
        self,
        *,
        scope: str | None = None,
        text: str | None = None,
        vector: Vector | None = None,
        audiences: Sequence[str] | None = (),
        k: int = 5,
        as_of: datetime | None = None,
        historical: bool = False,
        document_ids: Sequence[str] | None = None,
        min_vector_score: float | None = None,
    ) -> tuple[Found, ...]:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_search(k, as_of, vector, self._space)
        with self._guard:
            held = self._scope(name)
            instant = as_of or self._clock()
            candidates = [
                (document, version, row)
                for document in held.documents.values()
                if document.open_to(audiences)
                and (document_ids is None or document.document_id in document_ids)
                for version in document.versions.values()
                if historical or document.holds(version.number, instant)
                for row in version.rows
            ]
            everything = [
                row
                for document in held.documents.values()
                for version in document.versions.values()
                if document.holds(version.number, instant)
                for row in version.rows
            ]
            return memory_search.ranked(
                candidates,
                everything,
                lexemes=lexical.analyze_query(text) if text else {},
                vector=vector,
                average_length=held.average_length or 1.0,
                k=k,
                min_vector_score=min_vector_score,
            )

    def _publish(
        self,
        name: str,
        held: ScopeData,
        document: Document,
        edition: Edition,
        known: Mapping[str, Vector],
    ) -> Published:
        readers = tuple(sorted(set(edition.audiences)))
        readers_changed = not document.decided and document.audiences != readers
        if readers_changed:
            document.audiences = readers
        announced = readers_changed and document.published() is not None
        version = document.version_of(edition.digest)
        was_current = any(
            i.version == version.number and i.until is None for i in document.intervals
        )
        if was_current:
            state = "unchanged"
        elif version.number in document.ever:
            state = "reinstated"
        elif any(interval.until is None for interval in document.intervals):
            state = "replaced"
        else:
            state = "new"
        if not was_current:
            document.begin(version.number, edition.valid_from)
            announced = True
        if version.differs(edition):
            version.replace(edition, self._numbers)
            announced = True
            state = "rebuilt" if was_current else state
        if version.analyse(edition.language) and was_current:
            state = "rebuilt"
        version.describe(edition)
        for row in version.rows:
            if row.vector is None:
                found = known.get(row.chunk.embed_hash, edition.vectors.get(row.chunk.embed_hash))
                row.vector = found
        document.latest = version.number
        if held.average_length is None:
            held.average_length = memory_search.first_average(version.rows)
        waiting = version.waiting()
        document.expect(waiting, anew=state != "unchanged")
        if announced:
            self._announce(name, held, document)
        return Published(version.number, state, len(version.rows), waiting)

    def _known_vectors(self, held: ScopeData) -> dict[str, Vector]:
        return {
            row.chunk.embed_hash: row.vector
            for document in held.documents.values()
            for version in document.versions.values()
            for row in version.rows
            if row.vector is not None
        }
