"""Column gutters: where running text stands side by side.

Belongs here: finding vertical white strips that separate text, in horizontal bands, for any
number of columns. Not here: the order in which columns are read (`order`).
The idea of maximal white rectangles goes back to Breuel, "Two Geometric Algorithms for Layout
Analysis" (DAS 2002).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from kb_resources.parse.pdf.lines import Line

_MIN_LINES = 6
_MIN_CHARS = 12
_STEP = 3.0
_MAX_DEPTH = 2
_MAX_CANDIDATES = 8
_BAND_STARTS = (0.0, 0.12, 0.24, 0.36, 0.5, 0.6)


@dataclass(frozen=True, slots=True)
class Gutters:
    """Vertical strips that separate columns below a certain height.

    Attributes:
        top: where the columns begin, flow frame.
        at: abscissas of the gutters from left to right; empty for one column.
    """

    top: float
    at: tuple[float, ...]

    def column(self, line: Line) -> int:
        """0 for text across gutters or above the columns, else the column from 1."""
        if not self.at or line.box.top < self.top:
            return 0
        for number, x in enumerate(self.at, start=1):
            if line.box.right <= x + 1:
                previous = self.at[number - 2] if number > 1 else float("-inf")
                return number if line.box.left >= previous - 1 else 0
        return len(self.at) + 1 if line.box.left >= self.at[-1] - 1 else 0


def find_gutters(lines: Sequence[Line], width: float) -> Gutters:
    """Gutters of a page; columns may begin below a title that spans them."""
    usual = [line for line in lines if line.size < 40]
    if len(usual) < 2 * _MIN_LINES:
        return Gutters(0.0, ())
    top = min(line.box.top for line in usual)
    bottom = max(line.box.bottom for line in usual)
    for start in _BAND_STARTS:
        above = top + start * (bottom - top)
        band = [line for line in usual if line.box.top >= above]
        found = _gutters(band, width * 0.2, width * 0.8)
        if not found:
            continue
        if start == 0.0:
            return Gutters(0.0, tuple(found))
        crossing = [
            line.box.bottom
            for line in usual
            if line.box.top < above
            and any(line.box.left < x - 1 and line.box.right > x + 1 for x in found)
        ]
        return Gutters(min(above, max(crossing)) if crossing else min(above, top), tuple(found))
    return Gutters(0.0, ())


def _gutters(lines: list[Line], left: float, right: float, depth: int = 0) -> list[float]:
    """Gutters between two abscissas, from left to right; each part fills its column."""
    body = [line for line in lines if len(line.text) > _MIN_CHARS]
    if depth > _MAX_DEPTH or len(body) < 2 * _MIN_LINES:
        return []
    for x in _candidates(body, left, right):
        before = [line for line in body if line.box.right <= x + 1]
        after = [line for line in body if line.box.left >= x - 1]
        inner_before = _gutters(before, left, x - _STEP, depth + 1)
        inner_after = _gutters(after, x + _STEP, right, depth + 1)
        if (inner_before or _fills(before)) and (inner_after or _fills(after)):
            return [*inner_before, x, *inner_after]
    return []


def _candidates(body: list[Line], left: float, right: float) -> list[float]:
    """Abscissas with enough text on both sides, those that fewest lines cross first."""
    lefts = sorted(line.box.left for line in body)
    rights = sorted(line.box.right for line in body)
    found: list[tuple[int, float]] = []
    places: set[tuple[int, int]] = set()
    x = left
    while x <= right:
        before = bisect_right(rights, x + 1)
        after = len(lefts) - bisect_left(lefts, x - 1)
        crossing = len(body) - before - after
        fewer, more = sorted((before, after))
        enough = fewer >= max(_MIN_LINES, 0.2 * more) and crossing <= 0.25 * len(body)
        if enough and (before, after) not in places:
            places.add((before, after))  # further on between the same lines is the same gutter
            found.append((crossing, x))
        x += _STEP
    return [x for _, x in sorted(found)[:_MAX_CANDIDATES]]


def _fills(lines: list[Line]) -> bool:
    """Whether the usual line runs over most of the width: prose, not a list of short cells."""
    extent = max(line.box.right for line in lines) - min(line.box.left for line in lines)
    return median(line.box.width for line in lines) >= 0.55 * extent
