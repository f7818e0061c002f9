"""Cutting a text that is too long into pieces, at the best places it offers.

Belongs here: the levels of cuts (sentence ends, lines, clauses, spaces, graphemes) and the
breadth-first descent through them, which asks the counter once a level for the whole document.
Not here: filling chunks with the pieces. Every level is linear in the length of the text.
The order follows requirement O-04; grapheme borders are those of UAX 29.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Final

from kb_resources.chunk.counting import TokenCounter, count_tokens
from kb_resources.chunk.graphemes import joins_left, next_border
from kb_resources.chunk.sentences import sentence_breaks

Level = Callable[[str, int, int], list[int]]
"""Gives the cuts inside `text[start:end]`, ascending, both ends excluded."""

# No text worth keeping whole has more characters a token; beyond, it is cut without being counted.
_MAX_CHARS_PER_TOKEN: Final = 64
_SHORTEST: Final = 12
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n\s*")
_CLAUSE: Final = re.compile(r"[;:]\s++")
_COMMA: Final = re.compile(r"[,–—]\s++")
_SPACE: Final = re.compile(r"\s++")


@dataclass(slots=True)
class Segment:
    """A stretch of the body and its tokens; a tree once it has been split.

    Attributes:
        start: first code point in the body.
        end: exclusive.
        tokens: counted tokens, or more than any limit where counting was not worth while.
        parts: what it was split into, in order, without gaps; none if it is whole.
    """

    start: int
    end: int
    tokens: int = 0
    parts: Sequence[Segment] = ()

    def leaves(self) -> Iterator[Segment]:
        """The smallest segments in order; together they are the segment."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


@dataclass(frozen=True, slots=True)
class Oversized:
    """A segment to split.

    Attributes:
        segment: gets its `parts`.
        budget: tokens that a part may have.
        levels: cuts to try, best first.
    """

    segment: Segment
    budget: int
    levels: Sequence[Level]


def split(body: str, todo: Iterable[Oversized], counter: TokenCounter) -> None:
    """Split segments until each leaf keeps its budget or is a single code point.

    Args:
        body: the text that the segments point into.
        todo: what to split; the segments are changed in place.
        counter: asked once a level.
    """
    pending = list(todo)
    largest = max((item.budget for item in pending), default=0)
    while pending:
        opened = [(item, rest) for item in pending for rest in _open(body, item)]
        measure(body, [part for item, _ in opened for part in item.segment.parts], largest, counter)
        pending = [
            Oversized(part, item.budget, rest)
            for item, rest in opened
            for part in item.segment.parts
            if part.tokens > item.budget
        ]


def measure(body: str, segments: Sequence[Segment], largest: int, counter: TokenCounter) -> None:
    """Give segments their tokens, in one call.

    Args:
        body: the text that the segments point into.
        segments: what to count.
        largest: no budget is above it; a segment far too long even for this is not counted and
            comes out above it.
        counter: asked once.
    """
    most = largest * _MAX_CHARS_PER_TOKEN
    countable = [segment for segment in segments if segment.end - segment.start <= most]
    counts = count_tokens(counter, [body[segment.start : segment.end] for segment in countable])
    for segment, tokens in zip(countable, counts, strict=True):
        segment.tokens = tokens
    for segment in segments if len(countable) < len(segments) else ():
        chars = segment.end - segment.start
        if chars > most:
            segment.tokens = max(largest + 1, chars // _MAX_CHARS_PER_TOKEN)


def _open(body: str, item: Oversized) -> Iterator[Sequence[Level]]:
    """Give the segment parts; yields the levels left for them, nothing if it cannot be cut."""
    segment = item.segment
    for depth, level in enumerate(item.levels, start=1):
        cuts = level(body, segment.start, segment.end)
        if cuts:
            bounds = [segment.start, *cuts, segment.end]
            segment.parts = [Segment(a, b) for a, b in pairwise(bounds)]
            yield item.levels[depth:]
            return


def _sentences(text: str, start: int, end: int) -> list[int]:
    return _whole(text, sentence_breaks(text, start, end))


def _after(pattern: re.Pattern[str], text: str, start: int, end: int) -> list[int]:
    return _whole(text, (m.end() for m in pattern.finditer(text, start, end) if m.end() < end))


def _lines(text: str, start: int, end: int) -> list[int]:
    cuts = []
    position = text.find("\n", start, end) + 1
    while 0 < position < end:
        cuts.append(position)
        position = text.find("\n", position, end) + 1
    return _whole(text, cuts)


def _spaced(step: int, text: str, start: int, end: int) -> list[int]:
    """After white space, at least `step` characters apart."""
    cuts = []
    match = _SPACE.search(text, start + step, end)
    while match and match.end() < end:
        if not joins_left(text[match.end()]):
            cuts.append(match.end())
        match = _SPACE.search(text, match.end() + step, end)
    return cuts


def _whole(text: str, cuts: Iterable[int]) -> list[int]:
    """Cuts without those right after another, or before a mark that belongs to what precedes it."""
    kept = []
    last = -_SHORTEST
    for cut in cuts:
        if cut - last >= _SHORTEST and not joins_left(text[cut]):
            kept.append(cut)
            last = cut
    return kept


def _grapheme_steps(step: int, text: str, start: int, end: int) -> list[int]:
    cuts = []
    position = start
    while (position := next_border(text, position + step, position, end)) < end:
        cuts.append(position)
    return cuts


def _code_points(step: int, text: str, start: int, end: int) -> list[int]:
    """The last resort, for a grapheme that alone is over the limit."""
    del text
    return list(range(start + step, end, step))


_WORDS: Final[tuple[Level, ...]] = (
    partial(_spaced, 96),
    partial(_spaced, 1),
    partial(_grapheme_steps, 32),
    partial(_grapheme_steps, 1),
    partial(_code_points, 32),
    partial(_code_points, 1),
)
PROSE: Final[tuple[Level, ...]] = (
    _sentences,
    _lines,
    partial(_after, _CLAUSE),
    partial(_after, _COMMA),
    *_WORDS,
)
"""Sentence ends, line ends, clauses, spaces, graphemes."""

SENTENCES: Final[tuple[Level, ...]] = (_sentences,)
"""Sentence ends alone."""

LINES: Final[tuple[Level, ...]] = (partial(_after, _BLANK_LINE), _lines, *_WORDS)
"""For code: blank lines, line ends, spaces, graphemes."""


def middle_cut(text: str) -> int:
    """The best place to cut a text of at least two code points in two.

    The strongest cut that leaves a quarter of the text on both sides, nearest to the middle.
    """
    size = len(text)
    levels: tuple[Level, ...] = (partial(_after, _BLANK_LINE), *PROSE)
    for level in levels:
        cuts = level(text, 0, size)
        if cuts:
            best = min(cuts, key=lambda cut: abs(2 * cut - size))
            if size <= 4 * best <= 3 * size:
                return best
    return size // 2
