"""A quote with its place in a version, in forms others can use, and whether it still stands.

Belongs here: places, selectors and the check, as pure functions. What does not: rows (`store`).
Selectors: W3C Web Annotation Data Model, 4.2.4 Text Quote Selector and 4.2.5 Text Position
Selector; positions count code points of the whole body, without regard to pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Any

from kb_resources.answer.ground import at_word_borders, locate_folded
from kb_resources.answer.normalise import Folded, fold
from kb_resources.retrieve.hit import Hit, deep_link

AROUND = 32
"""Code points kept before and after a quote, enough to tell its place from a recurrence."""

MOST_OCCURRENCES = 10_000
"""Recurrences of a quote that are weighed against each other; the first of more."""


class CitationStatus(StrEnum):
    """What has become of a quote in the version that holds now."""

    STANDS = "stands"  # the cited version holds, and says so at the place
    SUPERSEDED = "superseded"  # another version holds, and says so at the same place
    MOVED = "moved"  # the words stand elsewhere in what holds now
    MISSING = "missing"  # the words are gone, or nothing of the document holds


@dataclass(frozen=True)
class VersionText:
    """What one version says.

    Attributes:
        version: number within the document.
        digest: SHA-256 hex of its source bytes.
        body: canonical Markdown.
        pages: page number to half-open code point span in the body; empty without pages.
        against: names version and body, to tell later whether a check still speaks of them.
    """

    version: int
    digest: str
    body: str
    pages: Mapping[int, tuple[int, int]]
    against: str = ""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> VersionText:
        """From the row of `store.citations.text_now` or `text_of_version`."""
        pages = {page[0]: (page[3], page[4]) for page in row["pages"]}
        return cls(row["version"], row["digest"], row["body"], pages, row["against"])

    def page_start(self, page: int | None) -> int | None:
        """Where a page's text begins in the body; None for a page that is not there."""
        if page is None or not self.pages:
            return 0
        return self.pages[page][0] if page in self.pages else None

    def page_at(self, at: int) -> int | None:
        """The page that holds a place of the body; None without pages."""
        return next((page for page, span in self.pages.items() if span[0] <= at < span[1]), None)

    @cached_property
    def folded(self) -> Folded:
        """The body folded for quote matching; costs about a quarter second a megabyte, once."""
        return fold(self.body)


@dataclass(frozen=True, slots=True)
class Quotation:
    """A verified quote and where it stands.

    Attributes:
        scope: scope name.
        document_id: the document.
        version: number within the document.
        digest: SHA-256 hex of the version's source bytes.
        passage_id: passage it was found in.
        page: 1-based page or None.
        char_start: in the page text (the body where there are no pages), code points.
        char_end: exclusive.
        body_start: in the whole body, code points.
        body_end: exclusive.
        quote: the document's own text in that span.
        prefix: up to 32 code points of the body before it.
        suffix: up to 32 code points of the body after it.
    """

    scope: str
    document_id: str
    version: int
    digest: str
    passage_id: str
    page: int | None
    char_start: int
    char_end: int
    body_start: int
    body_end: int
    quote: str
    prefix: str
    suffix: str

    @property
    def selector(self) -> list[dict[str, Any]]:
        """W3C selectors of the quote in the version's body."""
        quoted = {"exact": self.quote, "prefix": self.prefix, "suffix": self.suffix}
        return [
            {"type": "TextQuoteSelector", **quoted},
            {"type": "TextPositionSelector", "start": self.body_start, "end": self.body_end},
        ]

    @property
    def link(self) -> str:
        """Opens the passage in the page of this knowledge base, relative to its address."""
        return deep_link(self.scope, self.document_id, self.version, self.passage_id)

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return {**asdict(self), "selector": self.selector, "deep_link": self.link}


@dataclass(frozen=True, slots=True)
class Place:
    """Where words stand now."""

    page: int | None
    char_start: int
    char_end: int
    body_start: int
    body_end: int


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of checking a quote against what holds now.

    Attributes:
        status: what has become of it.
        version_now: version that holds now, None where nothing does.
        place: where the words stand in it, None where they do not.
    """

    status: CitationStatus
    version_now: int | None
    place: Place | None


def quotation(hit: Hit, start: int, end: int, text: VersionText) -> Quotation | None:
    """The span of a passage as a quotation, with its surroundings in the body.

    Args:
        hit: the passage.
        start: in the passage's text, code points.
        end: exclusive.
        text: the same version's text.

    Returns:
        None where the version's text does not hold the passage at its place (it was parsed anew).
    """
    page_start = text.page_start(hit.page)
    if page_start is None:
        return None
    begin, stop = (page_start + hit.char_start + at for at in (start, end))
    if text.body[begin:stop] != hit.text[start:end]:
        return None
    return Quotation(
        scope=hit.scope,
        document_id=hit.document_id,
        version=hit.version,
        digest=hit.digest,
        passage_id=hit.passage_id,
        page=hit.page,
        char_start=hit.char_start + start,
        char_end=hit.char_start + end,
        body_start=begin,
        body_end=stop,
        quote=hit.text[start:end],
        prefix=text.body[max(0, begin - AROUND) : begin],
        suffix=text.body[stop : stop + AROUND],
    )


def check(cited: Quotation, now: VersionText | None) -> Check:
    """What has become of a quote.

    Args:
        cited: as it was kept.
        now: the version that holds now, None where nothing of the document does.
    """
    if now is None or not cited.quote:
        return Check(CitationStatus.MISSING, now.version if now else None, None)
    page_start = now.page_start(cited.page)
    if page_start is not None:
        begin, end = page_start + cited.char_start, page_start + cited.char_end
        same = (now.version, now.digest) == (cited.version, cited.digest)
        if (
            now.body[begin:end] == cited.quote
            and _on_page(now, cited.page, begin, end)
            and (same or at_word_borders(now.body, begin, end))
        ):
            status = CitationStatus.STANDS if same else CitationStatus.SUPERSEDED
            return Check(status, now.version, _place(now, begin, end))
    found = _elsewhere(cited, now)
    if found is None:
        return Check(CitationStatus.MISSING, now.version, None)
    return Check(CitationStatus.MOVED, now.version, _place(now, *found))


def _on_page(now: VersionText, page: int | None, begin: int, end: int) -> bool:
    if page is None or not now.pages:
        return True
    return now.pages[page][0] <= begin and end <= now.pages[page][1]


def _elsewhere(cited: Quotation, now: VersionText) -> tuple[int, int] | None:
    """The occurrence with the most of the old surroundings, the nearest of equals."""
    size = len(cited.quote)
    starts = list(islice(_occurrences(cited.quote, now.body), MOST_OCCURRENCES))
    if not starts:
        return locate_folded(fold(cited.quote).text, now.folded)

    def fit(at: int) -> tuple[int, int]:
        before = _common(cited.prefix[::-1], now.body[max(0, at - AROUND) : at][::-1])
        after = _common(cited.suffix, now.body[at + size : at + size + AROUND])
        return before + after, -abs(at - cited.body_start)

    best = max(starts, key=fit)
    return best, best + size


def _occurrences(quote: str, body: str) -> Iterator[int]:
    at = body.find(quote)
    while at >= 0:
        if at_word_borders(body, at, at + len(quote)):
            yield at
        at = body.find(quote, at + 1)


def _common(left: str, right: str) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )


def _place(now: VersionText, begin: int, end: int) -> Place:
    page = now.page_at(begin)
    start = now.page_start(page) or 0
    return Place(page, begin - start, end - start, begin, end)
