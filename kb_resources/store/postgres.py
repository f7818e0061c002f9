"""The knowledge store over Postgres: each call one transaction of the role that may do it.

Belongs here: `contract.KnowledgeStore` over the aggregates of this package. What does not: their
SQL, and the line's stages, which write the same rows step by step. Reading runs as the reading
role, so that row level security stands behind every filter (O-19).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kb_resources import lexical
from kb_resources.model import GONE, DocumentState, validate_audience
from kb_resources.store import documents as ledger
from kb_resources.store import lifecycle, scopes, search, selections, vectors
from kb_resources.store.checks import (
    MAX_K,
    check_edition,
    check_rows,
    check_search,
    check_storable,
    confirmed,
)
from kb_resources.store.codec import storable
from kb_resources.store.contract import scope_of
from kb_resources.store.postgres_base import Opened, present
from kb_resources.store.postgres_work import PgOutbox, PgWork
from kb_resources.store.publishing import publish
from kb_resources.store.records import (
    DocumentPage,
    Edition,
    Found,
    PassageRecord,
    Published,
    StoredDocument,
    Vector,
    node_path,
)

_CANDIDATES = 200


class PgStore(PgWork, PgOutbox):
    """`contract.KnowledgeStore` in Postgres. Threads may share it; see `PgBase` for arguments."""

    def put(self, edition: Edition, *, scope: str | None = None) -> Published:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        check_storable(edition)
        check_edition(edition, self._space, self._limits)
        with self._writing(name) as opened:
            scopes.require_open(scopes.get(opened.conn, name))
            return publish(opened.conn, name, opened.scope_id, edition, self._space, self._actor)

    def get(
        self, document_id: str, *, scope: str | None = None, audiences: Sequence[str] | None = ()
    ) -> StoredDocument | None:
        """See `contract.KnowledgeStore`."""
        with self._reading(scope_of(scope, self._pinned)) as opened:
            rows = self._held(opened, audiences, document_id=storable(document_id), limit=1)
        return _document(rows[0]) if rows else None

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
        with self._reading(name) as opened:
            rows = self._held(opened, audiences, before=before, limit=limit + 1)
        page = rows[:limit]
        more = str(page[-1]["document_key"]) if len(rows) > limit else None
        return DocumentPage(tuple(map(_document, page)), more)

    def count(self, *, scope: str | None = None) -> tuple[int, int]:
        """See `contract.KnowledgeStore`."""
        with self._reading(scope_of(scope, self._pinned)) as opened:
            rows = opened.rows("scope_counts", now=self._clock())
        return (rows[0]["documents"], rows[0]["passages"]) if rows else (0, 0)

    def set_audiences(
        self, document_id: str, audiences: Sequence[str], *, scope: str | None = None
    ) -> bool:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        wanted = sorted({validate_audience(each) for each in audiences})
        with self._writing(name) as opened:
            row = opened.document(document_id)
            if row is None:
                return False
            held = lifecycle.decide_audiences(opened.conn, row, wanted, actor=self._actor)
            if held != wanted:
                self._log(opened, row, "audiences_set", before=held, audiences=wanted)
            return True

    def remove(self, document_id: str, *, scope: str | None = None) -> bool:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            return self._remove(opened, document_id)

    def restore(self, document_id: str, *, scope: str | None = None) -> bool:
        """See `contract.KnowledgeStore`."""
        with self._writing(scope_of(scope, self._pinned)) as opened:
            row = opened.document(document_id)
            state = lifecycle.restore(opened.conn, row, self._clock()) if row else None
            if row is None or state is None:
                return False
            self._log(opened, row, "restored", state=state.value)
            return True

    def remove_all(self, *, confirm: str, scope: str | None = None) -> int:
        """See `contract.KnowledgeStore`."""
        name = scope_of(scope, self._pinned)
        confirmed(confirm, name)
        states = [state for state in DocumentState if state not in GONE]
        with self._writing(name) as opened:
            keys = selections.select_keys(opened.conn, name, states, 2**31 - 1)
            return sum(self._remove(opened, key.document_id) for key in keys)

    def passage(
        self, passage_id: str, *, scope: str | None = None, audiences: Sequence[str] | None = ()
    ) -> PassageRecord | None:
        """See `contract.KnowledgeStore`."""
        with self._reading(scope_of(scope, self._pinned)) as opened:
            found = self._passages(opened, audiences, passage_id=storable(passage_id))
        return found[0] if found else None

    def passages(
        self,
        document_id: str,
        *,
        scope: str | None = None,
        audiences: Sequence[str] | None = (),
        under: Sequence[str] = (),
    ) -> tuple[PassageRecord, ...]:
        """See `contract.KnowledgeStore`."""
        with self._reading(scope_of(scope, self._pinned)) as opened:
            return self._passages(
                opened, audiences, document_id=storable(document_id), under=list(under)
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
        with self._reading(name) as opened:
            model = vectors.model_key(opened.conn, self._space.model_id)
            asked = search.SearchQuery(
                scope_ids=[opened.scope_id],
                lexemes=lexical.analyze_query(text) if text else {},
                vector=vector if model is not None else None,
                model_key=model,
                audiences=None if audiences is None else list(map(storable, audiences)),
                as_of=as_of or self._clock(),
                historical=historical,
                k=k if min_vector_score is None else 2 * _CANDIDATES,
                candidates=max(2 * MAX_K, _CANDIDATES),
                filters=search.RowFilter(
                    documents=None if document_ids is None else list(map(storable, document_ids))
                ),
            )
            if not asked.lexemes and asked.vector is None:
                return ()
            rows = search.run(opened.conn, asked)
        found = [
            Found(_record(row), row["score"], row["text_score"], row["vector_score"])
            for row in rows
        ]
        if min_vector_score is not None:
            found = [
                each
                for each in found
                if each.vector_score is not None and each.vector_score >= min_vector_score
            ]
        return tuple(found[:k])

    def _held(
        self,
        opened: Opened,
        audiences: Sequence[str] | None,
        *,
        limit: int,
        document_id: str | None = None,
        before: int | None = None,
    ) -> list[dict[str, Any]]:
        return opened.rows(
            "held_documents",
            **_reader(audiences),
            now=self._clock(),
            document_id=document_id,
            before=before,
            limit=limit,
        )

    def _passages(
        self,
        opened: Opened,
        audiences: Sequence[str] | None,
        *,
        document_id: str | None = None,
        passage_id: str | None = None,
        under: Sequence[str] = (),
    ) -> tuple[PassageRecord, ...]:
        rows = opened.rows(
            "held_passages",
            **_reader(audiences),
            now=self._clock(),
            document_id=document_id,
            passage_id=passage_id,
            under=list(under),
        )
        return tuple(map(_record, rows))

    def _remove(self, opened: Opened, document_id: str) -> bool:
        row = present(opened.document(document_id))
        if row is None:
            return False
        lifecycle.remove(opened.conn, row, self._clock(), "Removed by a caller of the store.")
        ledger.wake_duplicates(opened.conn, row)
        self._log(opened, row, "removed", state_before=row.state)
        return True


def _reader(audiences: Sequence[str] | None) -> dict[str, Any]:
    return {"everyone": audiences is None, "audiences": list(audiences or ())}


def _document(row: Mapping[str, Any]) -> StoredDocument:
    return StoredDocument(
        row["document_id"],
        row["version"],
        row["digest"],
        row["title"] or "",
        row["media_type"],
        row["language"] or "und",
        tuple(row["audiences"]),
        row["valid_from"],
        row["passages"],
    )


def _record(row: Mapping[str, Any]) -> PassageRecord:
    headings = tuple(row["heading_path"])
    return PassageRecord(
        row["passage_id"],
        row["document_id"],
        row["version"],
        row["text"],
        row["context"],
        row["title"] or "",
        headings,
        node_path(headings),
        row["page"],
        row["byte_start"],
        row["byte_end"],
    )
