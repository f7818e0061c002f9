"""Quotes of people and models: verified in a passage, kept on request, looked at again later.

Belongs here: the use cases around citations, each in transactions of the reading role. What does
not: the rules (`ground`, `citing`), the nightly re-check of all (`stages.citations`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

from kb_resources.answer.citing import (
    Check,
    CitationStatus,
    Quotation,
    VersionText,
    check,
    quotation,
)
from kb_resources.answer.ground import (
    MAX_QUOTE,
    Citation,
    Claim,
    ClaimedQuote,
    RejectReason,
    ground,
)
from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.model import Principal
from kb_resources.retrieve import Hit
from kb_resources.retrieve.visible import held_audiences, readable_scope
from kb_resources.store import citations
from kb_resources.store.codec import storable
from kb_resources.store.documents import Conn

WHY = {
    RejectReason.ABSENT: "The words do not stand in the passage.",
    RejectReason.MISATTRIBUTED: "The words stand in another passage.",
    RejectReason.STITCHED: "The words are put together from several places.",
    RejectReason.TOO_SHORT: "The quote has no word, or under 12 characters beside white space.",
    RejectReason.NO_PASSAGE: "There is no such passage.",
}
"""Reasons as sentences."""
MAX_HOLDER, MAX_NOTE = 200, 2000
"""Characters that are kept of either."""


class Passages(Protocol):
    """What gives a passage by id; see `retrieve.Retriever`."""

    def passage(
        self, passage_id: str, *, scope: str, principal: Principal, version: int | None = None
    ) -> Hit:
        """The passage, or NotFound."""
        ...


class Transactions(Protocol):
    """Transactions of a role; see `store.pool.Database`."""

    def transaction(
        self, role: Any, scope: str | Sequence[str] | None = None
    ) -> AbstractContextManager[Conn]:
        """One transaction that sees the named scopes."""
        ...


@dataclass(frozen=True, slots=True)
class QuoteCheck:
    """A quote as somebody wrote it, looked up in a passage.

    Attributes:
        passage: the passage it was looked for in.
        reason: why it was not accepted; None when it was.
        quotation: the document's own words and their place; None when not accepted.
        now: whether the document still says so; None when not accepted.
        against: names the text that `now` speaks of.
    """

    passage: Hit
    reason: RejectReason | None = None
    quotation: Quotation | None = None
    now: Check | None = None
    against: str = "-"

    @property
    def accepted(self) -> bool:
        """Whether the words stand there."""
        return self.quotation is not None

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        found, now = self.quotation, self.now
        return {
            "accepted": self.accepted,
            "reason": self.reason.value if self.reason else None,
            "message": WHY[self.reason] if self.reason else "",
            "quote": found.quote if found else None,
            "status": now.status.value if now else None,
            "version": self.passage.version,
            "version_now": now.version_now if now else None,
            "page": self.passage.page,
            "selector": found.selector if found else [],
            "deep_link": found.link if found else None,
        }


@dataclass(frozen=True, slots=True)
class KeptCitation:
    """A kept citation and the outcome of its last check."""

    citation_id: str
    holder: str
    note: str
    correlation_id: str | None
    created_by: str
    created_at: datetime
    quotation: Quotation
    status: CitationStatus
    version_now: int | None
    place: dict[str, Any] | None
    checked_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601."""
        return {
            "citation_id": self.citation_id,
            "holder": self.holder,
            "note": self.note,
            "correlation_id": self.correlation_id,
            "created_by": self.created_by,
            "created_at": self.created_at.isoformat(),
            **self.quotation.to_json(),
            "status": self.status.value,
            "version_now": self.version_now,
            "place": self.place,
            "checked_at": self.checked_at.isoformat() if self.checked_at else None,
        }


@dataclass(frozen=True, slots=True)
class Citations:
    """Verifies, keeps and re-checks quotes.

    Attributes:
        database: transactions of the reading role.
        passages: gives passages by id.
        clock: aware now, in UTC.
        new_id: gives citation ids.
    """

    database: Transactions
    passages: Passages
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], str] = lambda: secrets.token_hex(10)

    def verify(
        self,
        quote: str,
        passage_id: str,
        *,
        scope: str,
        principal: Principal,
        version: int | None = None,
    ) -> QuoteCheck:
        """Whether a quote stands in a passage, and whether its document still says so.

        Raises:
            InputError: the quote is longer than 2,000 characters.
            NotFound: no such passage for this principal.
        """
        if len(quote) > MAX_QUOTE:
            raise InputError(
                f"The quote has {len(quote):,} characters.",
                next_step=f"Quote {MAX_QUOTE:,} at most.",
            )
        hit = self.passages.passage(passage_id, scope=scope, principal=principal, version=version)
        found = ground([Claim("", (ClaimedQuote(1, quote),))], [hit.text]).statements[0]
        if not found.citations:
            return QuoteCheck(hit, reason=found.rejected[0].reason)
        with self.database.transaction("app", scope) as conn:
            made = place_in_version(conn, hit, found.citations[0])
            now = text_now(conn, hit)
        return QuoteCheck(
            hit, quotation=made, now=check(made, now), against=now.against if now else "-"
        )

    def keep(
        self,
        quote: str,
        passage_id: str,
        *,
        scope: str,
        principal: Principal,
        holder: str,
        note: str = "",
        version: int | None = None,
        correlation_id: str | None = None,
    ) -> KeptCitation:
        """Keep a quote for a holder (a person, a page, a record of another system).

        Raises:
            InputError: holder or note do not fit.
            NotFound: no such passage for this principal.
            PolicyError: the words do not stand there.
        """
        holder, note = storable(holder), storable(note)
        if not 1 <= len(holder) <= MAX_HOLDER or len(note) > MAX_NOTE:
            raise InputError(
                "The holder or the note is too long, or nobody is named.",
                next_step=f"Name a holder in {MAX_HOLDER} characters, note {MAX_NOTE:,} at most.",
            )
        found = self.verify(quote, passage_id, scope=scope, principal=principal, version=version)
        if found.quotation is None or found.now is None:
            reason = found.reason or RejectReason.ABSENT
            raise PolicyError(
                WHY[reason],
                next_step="Quote the passage word for word; kb passages show prints it.",
                code=f"quote_{reason.value}",
            )
        citation_id = self.new_id()
        row = {
            "citation_id": citation_id,
            "holder": holder,
            "note": note,
            "correlation_id": correlation_id,
            "created_by": principal.id,
            **asdict(found.quotation),
            **_outcome(found.now, self.clock(), found.against),
        }
        with self.database.transaction("app", scope) as conn:
            citations.keep(conn, row)
            kept = citations.kept(conn, scope, audiences=None, citation_id=citation_id)
        return _kept(kept[0])

    def kept(
        self,
        *,
        scope: str,
        principal: Principal,
        holder: str | None = None,
        document_id: str | None = None,
        status: str | None = None,
        after: str | None = None,
        limit: int = 1000,
    ) -> list[KeptCitation]:
        """Kept citations of documents this principal may read, oldest first.

        Args:
            scope: scope name.
            principal: who asks.
            holder: only this holder's.
            document_id: only of this document.
            status: only with this outcome.
            after: `citation_id` of the last one of the page before.
            limit: at most.
        """
        name = readable_scope(scope, principal)
        with self.database.transaction("app", name) as conn:
            rows = citations.kept(
                conn,
                name,
                audiences=held_audiences(principal),
                holder=holder,
                document_id=document_id,
                status=status,
                after=after,
                limit=limit,
            )
        return [_kept(row) for row in rows]

    def check(
        self,
        *,
        scope: str,
        principal: Principal,
        holder: str | None = None,
        citation_id: str | None = None,
    ) -> list[KeptCitation]:
        """Look at kept citations again now, all of the scope, a holder's, or one.

        Raises:
            NotFound: `citation_id` names none that this principal may see.
        """
        name = readable_scope(scope, principal)
        held = held_audiences(principal)
        with self.database.transaction("app", name) as conn:
            found = citations.kept(
                conn, name, audiences=held, holder=holder, citation_id=citation_id, limit=100_000
            )
            if citation_id and not found:
                raise _no_citation(citation_id, name)
            recheck(conn, found, self.clock)
            rows = citations.kept(
                conn, name, audiences=held, holder=holder, citation_id=citation_id, limit=100_000
            )
        return [_kept(row) for row in rows]

    def drop(self, citation_id: str, *, scope: str, principal: Principal) -> None:
        """Forget a kept citation; NotFound where this principal sees none of that id."""
        name = readable_scope(scope, principal)
        held = held_audiences(principal)
        with self.database.transaction("app", name) as conn:
            seen = citations.kept(conn, name, audiences=held, citation_id=citation_id)
            if not seen or not citations.drop(conn, name, citation_id):
                raise _no_citation(citation_id, name)


def place_in_version(conn: Conn, hit: Hit, found: Citation) -> Quotation:
    """A verified span of a passage with its place in the body.

    Raises:
        ConflictError: the version's text is gone or no longer holds the passage there
            (`changed_meanwhile`).
    """
    row = citations.text_of_version(conn, hit.scope, hit.document_id, hit.version)
    text = VersionText.from_row(row) if row else None
    made = quotation(hit, found.char_start, found.char_end, text) if text else None
    if made is None:
        raise ConflictError(
            f"The text of {hit.document_id!r} version {hit.version} changed meanwhile.",
            next_step="Search again.",
            code="changed_meanwhile",
        )
    return made


def text_now(conn: Conn, hit: Hit) -> VersionText | None:
    """What the passage's document says now."""
    row = citations.text_now(conn, hit.scope, hit.document_id)
    return VersionText.from_row(row) if row else None


def recheck(
    conn: Conn, rows: Iterable[citations.Row], clock: Callable[[], datetime]
) -> dict[str, str]:
    """Check kept citations and store the outcomes; returns the status by citation id.

    Args:
        conn: inside a transaction of the reading or the pipeline role.
        rows: from `store.citations.kept` or `due`.
        clock: aware now, in UTC.
    """
    outcomes: dict[str, str] = {}

    def document(row: citations.Row) -> tuple[str, str]:
        return row["scope"], row["document_id"] or ""

    for (scope, document_id), group in groupby(sorted(rows, key=document), key=document):
        found = citations.text_now(conn, scope, document_id) if document_id else None
        text = VersionText.from_row(found) if found else None
        for row in group:
            outcome = check(_quotation(row), text)
            outcomes[row["citation_id"]] = outcome.status.value
            stored = _outcome(outcome, clock(), text.against if text else "-")
            citations.record_check(conn, {"citation_id": row["citation_id"], **stored})
    return outcomes


def _outcome(found: Check, at: datetime, against: str) -> dict[str, Any]:
    return {
        "status": found.status.value,
        "version_now": found.version_now,
        "place": asdict(found.place) if found.place else None,
        "checked_at": at,
        "checked_against": against,
    }


def _quotation(row: citations.Row) -> Quotation:
    fields = {name: row[name] for name in Quotation.__dataclass_fields__}
    return Quotation(**{**fields, "document_id": row["document_id"] or ""})


def _kept(row: citations.Row) -> KeptCitation:
    names = ("citation_id", "holder", "note", "correlation_id", "created_by", "created_at")
    return KeptCitation(
        **{name: row[name] for name in names},
        quotation=_quotation(row),
        status=CitationStatus(row["status"]),
        version_now=row["version_now"],
        place=row["place"],
        checked_at=row["checked_at"],
    )


def _no_citation(citation_id: str, scope: str) -> NotFound:
    return NotFound(
        f"There is no citation {citation_id!r} in {scope!r}.", next_step="List with kb cite list."
    )
