"""The Postgres store's list of embedding work, and its outbox.

Belongs here: the contract's methods about vectors that are waited for and about events, over
`embed_work` and `outbox`. What does not: publishing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kb_resources.model import DocumentKey
from kb_resources.model.chunk import embedding_input
from kb_resources.store import documents as ledger
from kb_resources.store import outbox
from kb_resources.store.checks import (
    check_rows,
    check_vectors,
    check_vectors_count,
    no_document,
)
from kb_resources.store.codec import storable
from kb_resources.store.contract import scope_of
from kb_resources.store.postgres_base import PgBase, present
from kb_resources.store.records import Event, Missing, Vector, Work
from kb_resources.store.sql import sql
from kb_resources.store.vectors import stage_vectors


class PgWork(PgBase):
    """Vectors that are waited for."""

    def missing(self, document_id: str, *, scope: str | None = None) -> tuple[Missing, ...]:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            row = present(opened.document(document_id))
            if row is None:
                return ()
            rows = opened.rows(
                "missing_texts", version_key=row.version_key, model_key=opened.model_key
            )
        return tuple(
            Missing(each["embed_hash"], embedding_input(each["context"], each["text"]))
            for each in rows
        )

    def add_vectors(
        self, document_id: str, vectors: Mapping[str, Vector], *, scope: str | None = None
    ) -> int:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_vectors_count(len(vectors), self._limits)
        check_vectors(vectors, self._space)
        with self._writing(name) as opened:
            row = present(opened.document(document_id))
            if row is None or row.version_key is None:
                raise no_document(document_id, name)
            given = {"version_key": row.version_key, "model_key": opened.model_key}
            wanted = {each["embed_hash"] for each in opened.rows("missing_texts", **given)}
            fitting = [each for each in vectors if each in wanted]
            if fitting:
                matrix = np.stack([vectors[each] for each in fitting]).astype(np.float32)
                stage_vectors(opened.conn, row.version_key, opened.model_key, fitting, matrix)
            attached = opened.conn.execute(sql("attach_vectors"), given).fetchone()
            waiting = int(attached[0]) if attached else 0
            if not waiting:
                opened.works.arrived(row.document_key)
            return waiting

    def work(self, document_id: str, *, scope: str | None = None) -> Work | None:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            row = present(opened.document(document_id))
            return opened.works.of(document_id) if row else None

    def works(self, *, scope: str | None = None, limit: int = 100) -> tuple[Work, ...]:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_rows(limit, None, self._limits)
        with self._writing(name) as opened:
            return opened.works.open(limit=limit)

    def claim(
        self, *, holder: str, lease_s: float = 300.0, scope: str | None = None
    ) -> Work | None:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            return opened.works.claim(holder, self._clock(), lease_s)

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
        with self._writing(scope_of(scope, self._pinned)) as opened:
            row = opened.document(document_id)
            key = row.document_key if row else 0
            return opened.works.settle(document_id, key, holder, error, attempts)

    def requeue(self, document_id: str, *, scope: str | None = None) -> bool:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            return opened.works.requeue(storable(document_id))

    def recover(self, *, scope: str | None = None, attempts: int = 3) -> tuple[Work, ...]:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            ended = []
            for document_id, holder in opened.works.lapsed(self._clock()):
                [row] = ledger.load(opened.conn, [DocumentKey(opened.name, document_id)])
                ended.append(opened.works.give_up(document_id, row.document_key, holder, attempts))
            return tuple(ended)


class PgOutbox(PgBase):
    """Changes kept for consumers."""

    def subscribe(self, consumer: str, *, scope: str | None = None) -> None:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            outbox.subscribe(opened.conn, consumer, opened.scope_id)

    def unsubscribe(self, consumer: str, *, scope: str | None = None) -> None:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            outbox.unsubscribe(opened.conn, consumer, opened.scope_id)

    def events(
        self, consumer: str, *, scope: str | None = None, limit: int = 100
    ) -> tuple[Event, ...]:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_rows(limit, None, self._limits)
        with self._writing(name) as opened:
            return tuple(outbox.waiting(opened.conn, consumer, opened.scope_id, limit=limit))

    def acknowledge(
        self, consumer: str, event_ids: Iterable[str], *, scope: str | None = None
    ) -> int:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            return outbox.acknowledge(opened.conn, consumer, event_ids, opened.scope_id)
