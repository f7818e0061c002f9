"""The reading side's use cases over one open installation.

Belongs here: retriever and ledger listings behind one object, each call in one transaction of the
reading role. What does not: opening connections (`kb_resources.compose`), presenting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from kb_resources import retrieve
from kb_resources.compose import open_database, open_retriever, own_server
from kb_resources.compose_answers import blob_reader, open_answerer
from kb_resources.errors import NotFound
from kb_resources.model import Principal
from kb_resources.settings import Settings
from kb_resources.store import documents as ledger
from kb_resources.store import listing
from kb_resources.store.bodies import body_of
from kb_resources.store.lifecycle import Interval, intervals
from kb_resources.store.pool import Database

if TYPE_CHECKING:
    from kb_resources.answer.answer import Answer
    from kb_resources.answer.answerer import Answerer
    from kb_resources.answer.audit import ReadBlob, Trace
    from kb_resources.answer.keeping import Citations
    from kb_resources.answer.replay import Replay
    from kb_resources.retrieve import (
        DocumentText,
        EmbeddedQuestion,
        Explanation,
        Hit,
        Outline,
        PassageContext,
        Retriever,
        SearchFilters,
        SearchResult,
    )
    from kb_resources.supersede import Hunk


@dataclass(frozen=True, slots=True)
class Reader:
    """Searches, answers and lists; every call names one scope.

    Attributes:
        database: transactions of the reading role.
        retriever: finds passages.
        answerer: answers questions, or makes what does; None: sentences of the passages.
        read_blob: gives source bytes for audits; None: they are not looked at.
    """

    database: Database
    retriever: Retriever
    answerer: Answerer | Callable[[], Answerer] | None = None
    read_blob: ReadBlob | None = None

    def search(
        self,
        query: str | EmbeddedQuestion,
        *,
        scope: str,
        principal: Principal,
        k: int,
        mode: str,
        as_of: datetime | None,
        include_historical: bool,
        known_at: datetime | None = None,
        filters: SearchFilters | None = None,
        min_score: float | None = None,
        words: str = "any",
    ) -> SearchResult:
        """See `KnowledgeBase.search`."""
        return self.retriever.search(
            query,
            scope=scope,
            principal=principal,
            k=k,
            mode=mode,
            as_of=as_of,
            known_at=known_at,
            include_historical=include_historical,
            filters=filters,
            min_score=min_score,
            words=words,
        )

    def passage(
        self, passage_id: str, *, scope: str, principal: Principal, version: int | None
    ) -> Hit:
        """See `KnowledgeBase.passage`."""
        return self.retriever.passage(passage_id, scope=scope, principal=principal, version=version)

    def context(
        self,
        passage_id: str,
        before: int = 2,
        after: int = 2,
        *,
        scope: str,
        principal: Principal,
        version: int | None = None,
    ) -> PassageContext:
        """See `KnowledgeBase.context`."""
        return retrieve.passage_context(
            self.database,
            passage_id,
            scope=scope,
            principal=principal,
            version=version,
            before=before,
            after=after,
        )

    def outline(
        self, document_id: str, *, scope: str, principal: Principal, version: int | None = None
    ) -> Outline:
        """See `KnowledgeBase.outline`."""
        return retrieve.document_outline(
            self.database, document_id, scope=scope, principal=principal, version=version
        )

    def body(
        self, document_id: str, *, scope: str, principal: Principal, version: int | None = None
    ) -> DocumentText:
        """See `KnowledgeBase.body`."""
        return retrieve.document_text(
            self.database, document_id, scope=scope, principal=principal, version=version
        )

    def explain(
        self, passage_id: str, *, scope: str, principal: Principal, version: int | None = None
    ) -> Explanation:
        """See `KnowledgeBase.explain`."""
        return retrieve.explain_passage(
            self.database, passage_id, scope=scope, principal=principal, version=version
        )

    def ask(
        self,
        question: str,
        *,
        scope: str,
        principal: Principal,
        k: int = 8,
        as_of: datetime | None = None,
        correlation_id: str | None = None,
    ) -> Answer:
        """See `KnowledgeBase.ask`; without an answerer given, sentences of the passages."""
        return self._answering().ask(
            question,
            scope=scope,
            principal=principal,
            k=k,
            as_of=as_of,
            correlation_id=correlation_id,
        )

    def searches(
        self, *, scope: str, principal: Principal, limit: int, before: datetime | None
    ) -> list[dict[str, Any]]:
        """See `KnowledgeBase.searches`."""
        from kb_resources.answer.audit import recent_searches

        return recent_searches(
            self.database, scope=scope, principal=principal, limit=limit, before=before
        )

    def trace(self, correlation_id: str, *, scope: str, principal: Principal) -> Trace:
        """See `KnowledgeBase.trace`."""
        from kb_resources.answer.audit import trace

        return trace(
            self.database,
            correlation_id,
            scope=scope,
            principal=principal,
            read_blob=self.read_blob,
        )

    def replay(
        self, correlation_id: str, question: str, *, scope: str, principal: Principal
    ) -> Replay:
        """See `KnowledgeBase.replay`."""
        from kb_resources.answer.replay import replay

        return replay(
            self.database,
            self.retriever,
            self._answering().key,
            correlation_id,
            question,
            scope=scope,
            principal=principal,
        )

    @property
    def citations(self) -> Citations:
        """Verifies, keeps and re-checks quotes."""
        from kb_resources.answer.keeping import Citations

        return Citations(self.database, self.retriever)

    def _answering(self) -> Answerer:
        from kb_resources.answer.answerer import Answerer, extractive

        if isinstance(self.answerer, Answerer):
            return self.answerer
        return self.answerer() if self.answerer else extractive(self.database, self.retriever)

    def documents(
        self, *, scope: str, audiences: Sequence[str] | None, **filters: Any
    ) -> list[dict[str, Any]]:
        """See `KnowledgeBase.documents`."""
        with self.database.transaction("app", scope) as conn:
            ledger.get_scope(conn, scope)
            return listing.documents(conn, scope, audiences=audiences, **filters)

    def document(self, document_id: str, *, scope: str) -> dict[str, Any]:
        """See `KnowledgeBase.document`."""
        with self.database.transaction("app", scope) as conn:
            ledger.get_scope(conn, scope)
            return listing.document(conn, scope, document_id)

    def history(self, document_id: str, *, scope: str) -> list[dict[str, Any]]:
        """See `KnowledgeBase.history`."""
        with self.database.transaction("app", scope) as conn:
            ledger.get_scope(conn, scope)
            return listing.history(conn, scope, document_id)

    def intervals(
        self,
        document_id: str,
        *,
        scope: str,
        known_at: datetime | None = None,
        valid_at: datetime | None = None,
        audiences: Sequence[str] | None = None,
    ) -> list[Interval]:
        """See `KnowledgeBase.intervals`."""
        with self.database.transaction("app", scope) as conn:
            ledger.get_scope(conn, scope)
            return intervals(
                conn,
                scope,
                document_id,
                known_at=known_at,
                valid_at=valid_at,
                audiences=audiences,
            )

    def diff(
        self,
        document_id: str,
        *,
        scope: str,
        old: int,
        new: int,
        audiences: Sequence[str] | None = None,
    ) -> tuple[Hunk, ...]:
        """See `KnowledgeBase.diff`."""
        from kb_resources.supersede import diff

        with self.database.transaction("app", scope) as conn:
            ledger.get_scope(conn, scope)
            before, after = (
                body_of(conn, scope, document_id, number, audiences=audiences).body
                for number in (old, new)
            )
        return diff(before, after)


@contextmanager
def open_reader(settings: Settings) -> Iterator[Reader]:
    """Open database and retriever; the model loads with the first query that needs it.

    Raises:
        NotFound: nothing was ever ingested here.
        UnavailableError: the database is away.
    """
    if not own_server(settings) and not (settings.home / "postgres").exists():
        raise NotFound(
            f"There is no knowledge base in {settings.home}.",
            next_step="Ingest something first (kb ingest FOLDER --scope NAME), or set KB_HOME.",
        )
    with open_database(settings) as database:
        retriever = open_retriever(settings, database)
        yield Reader(
            database,
            retriever,
            partial(open_answerer, settings, database, retriever),
            blob_reader(settings),
        )
