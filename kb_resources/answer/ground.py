"""Grounding: every quote an answer claims is found in its passage, or rejected with the reason.

Belongs here: verification as a pure function. What does not: asking a model. A citation's quote is
always the document's own text, never the model's spelling of it. Rules: requirements O-41 to O-45.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kb_resources.answer.normalise import Folded, fold

MIN_QUOTE = 12
"""Shortest quote in characters that are not white space, unless it is the whole passage (O-42)."""

MAX_QUOTE = 2000
"""Longest quote in characters that anybody may have looked up."""

_NUMBER = re.compile(r"\d[.,'\u2019]\d")
_ELLIPSIS = re.compile(r"\s*(?:\[?\.\.\.\]?|\[?\u2026\]?)\s*")


class RejectReason(StrEnum):
    """Why a quote was not accepted."""

    ABSENT = "absent"
    MISATTRIBUTED = "misattributed"
    STITCHED = "stitched"
    TOO_SHORT = "too_short"
    NO_PASSAGE = "no_passage"


@dataclass(frozen=True, slots=True)
class ClaimedQuote:
    """What an answer says it quotes.

    Attributes:
        passage: 1-based number of the passage in the prompt.
        quote: the words, as the model wrote them.
    """

    passage: int
    quote: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of an answer with the quotes it rests on."""

    text: str
    quotes: tuple[ClaimedQuote, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """A verified quote.

    Attributes:
        passage: 1-based number of the passage.
        char_start: in the passage's text, code points.
        char_end: exclusive.
        quote: the passage's own text in that span.
    """

    passage: int
    char_start: int
    char_end: int
    quote: str


@dataclass(frozen=True, slots=True)
class RejectedQuote:
    """A quote that was not found where it was claimed."""

    claimed: ClaimedQuote
    reason: RejectReason


@dataclass(frozen=True, slots=True)
class GroundedStatement:
    """A statement with what was verified; `supported` is whether a citation is left (O-45)."""

    text: str
    citations: tuple[Citation, ...]
    rejected: tuple[RejectedQuote, ...]

    @property
    def supported(self) -> bool:
        """Whether at least one quote was verified."""
        return bool(self.citations)


@dataclass(frozen=True, slots=True)
class Grounded:
    """An answer's statements, verified."""

    statements: tuple[GroundedStatement, ...]

    @property
    def rejected(self) -> tuple[RejectedQuote, ...]:
        """All rejected quotes."""
        return tuple(item for statement in self.statements for item in statement.rejected)


def locate(quote: str, source: str) -> tuple[int, int] | None:
    """Where a quote stands in a text: its first place at word borders, case-sensitive.

    Args:
        quote: as somebody wrote it.
        source: the text it should stand in.

    Returns:
        Half-open code point span in `source`, or None.
    """
    return locate_folded(fold(quote).text, fold(source))


def ground(claims: Sequence[Claim], passages: Sequence[str]) -> Grounded:
    """Verify an answer against the passages it was given.

    Args:
        claims: the answer's statements.
        passages: texts in the order of the prompt.
    """
    sources = [fold(text) for text in passages]
    return Grounded(tuple(_statement(claim, passages, sources) for claim in claims))


def _statement(
    claim: Claim, passages: Sequence[str], sources: Sequence[Folded]
) -> GroundedStatement:
    citations, rejected = [], []
    for claimed in claim.quotes:
        found = _verify(claimed, passages, sources)
        if isinstance(found, Citation):
            citations.append(found)
        else:
            rejected.append(RejectedQuote(claimed, found))
    return GroundedStatement(claim.text, tuple(citations), tuple(rejected))


def _verify(
    claimed: ClaimedQuote, passages: Sequence[str], sources: Sequence[Folded]
) -> Citation | RejectReason:
    if not 1 <= claimed.passage <= len(passages):
        return RejectReason.NO_PASSAGE
    quote = fold(claimed.quote).text
    own = sources[claimed.passage - 1]
    if _says_little(quote) and (not quote or quote != own.text):
        return RejectReason.TOO_SHORT
    span = locate_folded(quote, own)
    if span is not None:
        text = passages[claimed.passage - 1]
        return Citation(claimed.passage, *span, text[span[0] : span[1]])
    if any(locate_folded(quote, other) for other in sources):
        return RejectReason.MISATTRIBUTED
    return RejectReason.STITCHED if _stitched(quote, sources) else RejectReason.ABSENT


def _says_little(quote: str) -> bool:
    """Dots and rulers stand in many a passage, however long, and support nothing."""
    return len(quote.replace(" ", "")) < MIN_QUOTE or not any(map(str.isalnum, quote))


def locate_folded(quote: str, source: Folded) -> tuple[int, int] | None:
    """`locate` for a quote and a text that are folded already."""
    at = source.text.find(quote) if quote else -1
    while at >= 0:
        end = at + len(quote)
        if at_word_borders(source.text, at, end):
            return source.starts[at], source.ends[end - 1]
        at = source.text.find(quote, at + 1)
    return None


def at_word_borders(text: str, start: int, end: int) -> bool:
    """Whether a span neither begins nor ends inside a word or a number."""
    return not (_inside_word(text, start) or _inside_word(text, end))


def _inside_word(text: str, at: int) -> bool:
    """Whether a position lies between two letters or digits of a script that writes spaces.

    Nor is it beside the point of a number: `2.5 million` does not say `5 million`, nor `2`.
    """
    if not 0 < at < len(text):
        return False
    return (
        (_wordy(text[at - 1]) and _wordy(text[at]))
        or _NUMBER.match(text, at - 1) is not None
        or (at > 1 and _NUMBER.match(text, at - 2) is not None)
    )


def _wordy(char: str) -> bool:
    return char.isalnum() and char < "\u0e00"


def _stitched(quote: str, sources: Sequence[Folded]) -> bool:
    """Whether the quote is two or more pieces that stand somewhere, but not together."""
    pieces = [piece for piece in _ELLIPSIS.split(quote) if piece]
    if len(pieces) > 1:
        return all(_stands(piece, sources) for piece in pieces)
    spaces = [at for at, char in enumerate(quote) if char == " "]
    cuts = [
        at
        for before, at in enumerate(spaces)
        if at - before >= MIN_QUOTE and len(quote) - at - (len(spaces) - before) >= MIN_QUOTE
    ]
    # What begins a piece that stands somewhere stands there too, and so does what ends one: the
    # last cut whose head stands leaves the shortest tail, which stands if any of them does.
    heads = bisect_left(cuts, True, key=lambda at: not _stands(quote[:at], sources))
    return heads > 0 and _stands(quote[cuts[heads - 1] + 1 :], sources)


def _stands(piece: str, sources: Sequence[Folded]) -> bool:
    return any(locate_folded(piece, source) for source in sources)
