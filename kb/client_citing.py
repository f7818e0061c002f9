"""The calls of `KnowledgeBase` about citations and the logs.

Belongs here: signatures, documentation, who asks. What does not: the work (`kb_resources.answer`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kb_resources.model import Principal, validate_scope

if TYPE_CHECKING:
    from kb.reader import Reader
    from kb_resources.answer.audit import Trace
    from kb_resources.answer.keeping import KeptCitation, QuoteCheck
    from kb_resources.answer.replay import Replay


class CitingCalls:
    """Part of `KnowledgeBase`, which opens the reader and knows who asks."""

    def cite_check(
        self,
        quote: str,
        passage_id: str,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        version: int | None = None,
    ) -> QuoteCheck:
        """Whether a quote stands in a passage, and whether its document still says so."""
        return self._reader().citations.verify(
            quote,
            passage_id,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            version=version,
        )

    def keep_citation(
        self,
        quote: str,
        passage_id: str,
        *,
        scope: str,
        holder: str,
        audiences: Iterable[str] = (),
        note: str = "",
        version: int | None = None,
        correlation_id: str | None = None,
    ) -> KeptCitation:
        """Keep a verified quote for a holder; it is looked at again when its document changes.

        Args:
            quote: words of the passage.
            passage_id: stable id.
            scope: scope name.
            holder: whose citation it is: a person, a page, a record of another system.
            audiences: names the reader holds.
            note: for the holder, at most 2,000 characters.
            version: number of the version; default the one that holds now.
            correlation_id: of the search or answer it comes from.

        Raises:
            NotFound: no such passage for this reader.
            PolicyError: the words do not stand there.
        """
        return self._reader().citations.keep(
            quote,
            passage_id,
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            holder=holder,
            note=note,
            version=version,
            correlation_id=correlation_id,
        )

    def citations(
        self,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        holder: str | None = None,
        document_id: str | None = None,
        status: str | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> list[KeptCitation]:
        """Kept citations of documents this reader may see, oldest first."""
        return self._reader().citations.kept(
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            holder=holder,
            document_id=document_id,
            status=status,
            after=after,
            limit=limit,
        )

    def check_citations(
        self,
        *,
        scope: str,
        audiences: Iterable[str] = (),
        holder: str | None = None,
        citation_id: str | None = None,
    ) -> list[KeptCitation]:
        """Look at kept citations again now: all of the scope, a holder's, or one."""
        return self._reader().citations.check(
            scope=validate_scope(scope),
            principal=self._principal(audiences),
            holder=holder,
            citation_id=citation_id,
        )

    def drop_citation(self, citation_id: str, *, scope: str) -> None:
        """Forget a kept citation; NotFound where there is none."""
        self._reader().citations.drop(
            citation_id, scope=validate_scope(scope), principal=self._operator()
        )

    def searches(
        self, *, scope: str, limit: int = 50, before: datetime | None = None
    ) -> list[dict[str, Any]]:
        """Newest searches of the log: id, time, who, mode, number of hits; no question.

        Args:
            scope: scope name.
            limit: 1 to 1,000.
            before: aware time; only older ones.
        """
        return self._reader().searches(
            scope=validate_scope(scope),
            principal=self._operator(),
            limit=max(1, min(limit, 1000)),
            before=before,
        )

    def trace(self, correlation_id: str, *, scope: str) -> Trace:
        """From an answer or a search to the bytes behind it; NotFound for an unknown id."""
        return self._reader().trace(
            correlation_id, scope=validate_scope(scope), principal=self._operator()
        )

    def replay(self, correlation_id: str, question: str, *, scope: str) -> Replay:
        """A logged search run again as of then and now; InputError for another question."""
        return self._reader().replay(
            correlation_id, question, scope=validate_scope(scope), principal=self._operator()
        )

    def _operator(self) -> Principal:
        raise NotImplementedError

    def _principal(self, audiences: Iterable[str]) -> Principal:
        raise NotImplementedError

    def _reader(self) -> Reader:
        raise NotImplementedError
