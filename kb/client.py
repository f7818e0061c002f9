"""`KnowledgeBase`: the Python door to the reading side.

Example:
    >>> from kb import KnowledgeBase
    >>> with KnowledgeBase() as kb:
    ...     found = kb.search("How many days of leave?", scope="acme")
    ...     print(found.hits[0].text)

Belongs here: one object that opens what a reader needs, on first use. What does not: ranking
(`kb_resources.retrieve`), ingesting (`kb.ingesting`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kb.client_citing import CitingCalls
from kb.client_embedding import EmbeddingCalls
from kb_resources.model import Principal, validate_audience, validate_scope
from kb_resources.settings import Settings, load_settings

if TYPE_CHECKING:
    from kb.reader import Reader
    from kb_resources.answer.answer import Answer
    from kb_resources.retrieve import (
        DocumentText,
        EmbeddedQuestion,
        Explanation,
        Hit,
        Joined,
        Outline,
        PassageContext,
        SearchFilters,
        SearchResult,
    )
    from kb_resources.store.lifecycle import Interval
    from kb_resources.supersede import Hunk


class KnowledgeBase(CitingCalls, EmbeddingCalls):
    """Searches and reads one installation; use as a context manager or call `close`.

    Threads may share one; `AsyncKnowledgeBase` is its awaited form.

    Args:
        settings: default: read from the environment.
        principal_id: who asks, for the logs.
    """

    def __init__(self, settings: Settings | None = None, *, principal_id: str = "cli:local"):
        self._settings = settings or load_settings()
        self._principal_id = principal_id
        self._stack = ExitStack()
        self._guard = threading.Lock()
        self._opened: Reader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and the model."""
        with self._guard:
            self._opened = None
            self._stack.close()

    def search(
        self,
        query: str | EmbeddedQuestion,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        k: int = 8,
        mode: str = "hybrid",
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        include_historical: bool = False,
        filters: SearchFilters | None = None,
        min_score: float | None = None,
        words: str = "any",
    ) -> SearchResult:
        """Ranked passages of one scope.

        Args:
            query: any text, or what `embed` gave.
            scope: scope name.
            audiences: names the reader holds.
            k: passages at most, 1 to 100.
            mode: `hybrid`, `text` or `vector`.
            as_of: aware time; what was valid then instead of now.
            known_at: aware time; what was known then to be valid, instead of what is known now.
            include_historical: superseded versions too.
            filters: `kb_resources.retrieve.SearchFilters`: conditions that hold for every hit.
            min_score: relevance that hits need, 0 to 1; those that have none stay.
            words: passages with `any` of the words, with `all` of them, or those `all_first`.

        Raises:
            ScopeRequired: no scope.
            NotFound: no such scope.
            UnavailableError: database or model is away.
        """
        return self._reader().search(
            query,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            k=k,
            mode=mode,
            as_of=as_of,
            known_at=known_at,
            include_historical=include_historical,
            filters=filters,
            min_score=min_score,
            words=words,
        )

    def joined(
        self, found: SearchResult, *, audiences: Iterable[str] = (), siblings: int = 1
    ) -> tuple[Joined, ...]:
        """The hits of a search by section, with headings and neighbours in the same section.

        Args:
            found: what `search` gave.
            audiences: names the reader holds, as in the search.
            siblings: passages read before and after each hit, 0 to 50.
        """
        from kb_resources.retrieve import hierarchy_join

        return hierarchy_join(
            self._reader().database,
            found.hits,
            principal=self._principal(audiences),
            siblings=siblings,
        )

    def warm(self) -> None:
        """Load the models now; returns when the reranker is there too, where one is set."""
        self._reader().retriever.warm(wait=True)

    def ask(
        self,
        question: str,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        k: int = 8,
        as_of: datetime | None = None,
        correlation_id: str | None = None,
    ) -> Answer:
        """An answer with verified citations, or an abstention.

        Args:
            question: any text.
            scope: scope name.
            audiences: names the reader holds.
            k: passages the answer may rest on, 1 to 100.
            as_of: aware time; from what was valid then.
            correlation_id: names it in the logs; None: a new one.

        Raises:
            InputError: the question is blank (`blank_question`).
            NotFound: no such scope.
            PolicyError: the texts may not go to the model that is set.
            UnavailableError: database or model is away.
            IntegrityError: the model twice replied something else than was asked.
        """
        return self._reader().ask(
            question,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            k=k,
            as_of=as_of,
            correlation_id=correlation_id,
        )

    def passage(
        self,
        passage_id: str,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        version: int | None = None,
    ) -> Hit:
        """One passage by id, the newest valid version by default; NotFound where none shows."""
        return self._reader().passage(
            passage_id,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            version=version,
        )

    def context(
        self,
        passage_id: str,
        before: int = 2,
        after: int = 2,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        version: int | None = None,
    ) -> PassageContext:
        """A passage between its neighbours in the same version, with its deep link.

        Args:
            passage_id: stable id.
            before: passages before it, 0 to 50.
            after: passages after it, 0 to 50.
            scope: scope name.
            audiences: names the reader holds.
            version: number of the version; default the one that holds now.

        Raises:
            NotFound: no such scope or passage for this reader.
            InputError: a number is out of range.
        """
        return self._reader().context(
            passage_id,
            before,
            after,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            version=version,
        )

    def outline(
        self,
        document_id: str,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        version: int | None = None,
    ) -> Outline:
        """Headings of a document as a tree with passage ids and pages; NotFound as `context`."""
        return self._reader().outline(
            document_id,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            version=version,
        )

    def body(
        self,
        document_id: str,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        version: int | None = None,
    ) -> DocumentText:
        """A version's Markdown with its blocks and passages in place; NotFound as `context`."""
        return self._reader().body(
            document_id,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            version=version,
        )

    def explain(
        self,
        passage_id: str,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        version: int | None = None,
    ) -> Explanation:
        """How a passage came to be, from bytes to vector; NotFound as `context`."""
        return self._reader().explain(
            passage_id,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            version=version,
        )

    def documents(
        self,
        *,
        scope: str,
        audiences: Iterable[str] | None = None,
        state: str | None = None,
        document_id: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[dict[str, Any]]:
        """Documents of a scope, newest first.

        Args:
            scope: scope name.
            audiences: names held; None shows all (the operator's view).
            state: only this state.
            document_id: only this document.
            limit: 1 to 1,000.
            before: `document_key` of the last row of the page before.
        """
        held = None if audiences is None else [validate_audience(name) for name in audiences]
        return self._reader().documents(
            scope=validate_scope(scope),
            audiences=held,
            state=state,
            document_id=document_id,
            limit=max(1, min(limit, 1000)),
            before=before,
        )

    def document(self, document_id: str, *, scope: str) -> dict[str, Any]:
        """One document with coverage and events; NotFound where there is none."""
        return self._reader().document(document_id, scope=validate_scope(scope))

    def history(self, document_id: str, *, scope: str) -> list[dict[str, Any]]:
        """Versions of a document with their intervals, oldest first."""
        return self._reader().history(document_id, scope=validate_scope(scope))

    def intervals(
        self,
        document_id: str,
        *,
        scope: str,
        known_at: datetime | None = None,
        valid_at: datetime | None = None,
        audiences: Iterable[str] | None = None,
    ) -> list[Interval]:
        """When each version of a document held, in valid time, and when that was known.

        Args:
            document_id: the document.
            scope: scope name.
            known_at: aware instant; only what was known then. None: all that was ever known.
            valid_at: aware instant; only what held then.
            audiences: names held; None shows all (the operator's view).
        """
        held = None if audiences is None else [validate_audience(name) for name in audiences]
        return self._reader().intervals(
            document_id,
            scope=validate_scope(scope),
            known_at=known_at,
            valid_at=valid_at,
            audiences=held,
        )

    def diff(
        self,
        document_id: str,
        *,
        scope: str,
        old: int,
        new: int,
        audiences: Iterable[str] | None = None,
    ) -> tuple[Hunk, ...]:
        """What changed between the bodies of two versions, words inside changed lines.

        Args:
            document_id: the document.
            scope: scope name.
            old: version number to compare from.
            new: version number to compare to.
            audiences: names held; None shows all (the operator's view).

        Raises:
            NotFound: no such document or version for this reader.
            PolicyError: a version is not cleared, or its text was purged.
        """
        held = None if audiences is None else [validate_audience(name) for name in audiences]
        return self._reader().diff(
            document_id, scope=validate_scope(scope), old=old, new=new, audiences=held
        )

    def _operator(self) -> Principal:
        """Whoever runs this installation sees all of it."""
        return Principal(self._principal_id, roles=frozenset({"admin", "system"}))

    def _principal(self, audiences: Iterable[str]) -> Principal:
        names = frozenset(validate_audience(name) for name in audiences)
        return Principal(self._principal_id, audiences=names)

    def _reader(self) -> Reader:
        with self._guard:
            if self._opened is None:
                from kb.reader import open_reader

                self._opened = self._stack.enter_context(open_reader(self._settings))
            return self._opened
