"""Running heads, running feet and page numbers: what repeats on pages and is no text.

Belongs here: deciding which lines go, with a reason for each. Nothing is dropped in silence: the
result becomes the report of removed lines. A line goes only on evidence from several pages: the
same words at the same height, a number that counts the pages, or an outermost row in a style of
its own. The first line of a page that merely happens to stand at the top is text.
"Furniture" is docling's word: https://docling-project.github.io/docling/concepts/docling_document
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kb_resources.model import RemovedLine
from kb_resources.parse.pdf.lines import Line
from kb_resources.parse.pdf.marks import PAGE_NUMBER, SENTENCE_END
from kb_resources.parse.pdf.profile import Profile

_EDGE = 0.12
_WIDE_EDGE = 0.2
_NUMBER_EDGE = 0.09
_HEIGHT_STEPS = 60
_MAX_HEAD_CHARS = 120
_DIGITS = re.compile(r"\d+")
_LAST_NUMBER = re.compile(r"\d{1,5}")

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PageLines:
    """The upright lines of one page and the page's height in points."""

    number: int
    height: float
    lines: Sequence[Line]


def find_furniture(pages: Sequence[PageLines], usual: Profile) -> dict[int, dict[int, RemovedLine]]:
    """Which lines of which page are furniture.

    Returns:
        Per page number: index of the line → the entry for the report.
    """
    repeated = _repeated(pages)
    counting = _counting(pages)
    styled = _styled_rows(pages, usual)
    found: dict[int, dict[int, RemovedLine]] = {}
    for page in pages:
        marked: dict[int, RemovedLine] = {}
        ends = {id(line) for line in _ends(page)}
        for index, line in enumerate(page.lines):
            if not _at_edge(line, page.height, _EDGE) and id(line) not in ends:
                continue
            number = PAGE_NUMBER.match(line.text) is not None
            if number and _is_page_number(line, page, counting, alone=len(pages) < 3):
                marked[index] = RemovedLine(page.number, line.text, "page_number")
            elif (
                _near(_exact(line, page.height), repeated)
                or _near(_shape(line, page.height), counting)
                or (page.number, index) in styled
            ):
                reason = "page_number" if number else "running_head"
                marked[index] = RemovedLine(page.number, line.text, reason)
        if marked:
            found[page.number] = marked
    return found


def _at_edge(line: Line, height: float, share: float) -> bool:
    return line.box.bottom < share * height or line.box.top > (1 - share) * height


def _step(line: Line, height: float) -> int:
    return round(line.box.middle / height * _HEIGHT_STEPS)


def _exact(line: Line, height: float) -> Key:
    return line.text.casefold(), _step(line, height)


def _shape(line: Line, height: float) -> Key:
    return _DIGITS.sub("#", line.text.casefold()), _step(line, height)


def _near(key: Key, keys: frozenset[Key]) -> bool:
    """Whether a key is known, one step up or down included."""
    text, step = key
    return any((text, step + delta) in keys for delta in (0, -1, 1))


def _edge_lines(page: PageLines, share: float = _EDGE) -> list[Line]:
    return [line for line in page.lines if _at_edge(line, page.height, share)]


def _ends(page: PageLines) -> list[Line]:
    """The lines of the first and the last row, where wide margins put running heads."""
    if not page.lines:
        return []
    top = min(page.lines, key=lambda line: line.box.top).box
    bottom = max(page.lines, key=lambda line: line.box.bottom).box
    return [
        line
        for line in _edge_lines(page, _WIDE_EDGE)
        if line.box.overlap_y(top) > 0 or line.box.overlap_y(bottom) > 0
    ]


def _need(pages: Sequence[PageLines]) -> float:
    """On how many pages something must show to be furniture."""
    return max(2, math.ceil(len(pages) / 2)) if len(pages) <= 6 else max(3, 0.1 * len(pages))


def _repeated(pages: Sequence[PageLines]) -> frozenset[Key]:
    """The same words at the same height on several pages."""
    seen: Counter[Key] = Counter()
    for page in pages:
        seen.update(
            {
                _exact(line, page.height)
                for line in (*_edge_lines(page), *_ends(page))
                if not line.text.isdigit() and len(line.text) <= 2 * _MAX_HEAD_CHARS
            }
        )
    return frozenset(key for key, count in seen.items() if count >= max(2, _need(pages)))


def _counting(pages: Sequence[PageLines]) -> frozenset[Key]:
    """Lines at one height that are equal but for a number that runs with the pages."""
    offsets: defaultdict[Key, Counter[int]] = defaultdict(Counter)
    for page in pages:
        for line in _edge_lines(page):
            key = _shape(line, page.height)
            for number in {int(text) for text in _LAST_NUMBER.findall(line.text)}:
                offsets[key][number - page.number] += 1
    need = max(2, _need(pages))
    return frozenset(
        key for key, counts in offsets.items() if counts and counts.most_common(1)[0][1] >= need
    )


def _is_page_number(line: Line, page: PageLines, counting: frozenset[Key], *, alone: bool) -> bool:
    """A bare number that counts pages elsewhere, or lies outermost with nothing beside it."""
    if _near(_shape(line, page.height), counting):
        return True
    if not _at_edge(line, page.height, 0.06 if alone else _NUMBER_EDGE):
        return False
    outermost = all(
        other is line or other.box.top >= line.box.top or other.box.bottom <= line.box.bottom
        for other in page.lines
    )
    beside = any(
        other is not line
        and other.box.overlap_y(line.box) > 0.5 * min(other.box.height, line.box.height)
        and len(other.text) > 80
        for other in page.lines
    )
    return outermost and not beside


def _styled_rows(pages: Sequence[PageLines], usual: Profile) -> set[tuple[int, int]]:
    """Running heads that change by chapter: an outermost row in a style of its own.

    The row must stand at one height on half of the pages, apart from the text, and be smaller,
    slanted, bold, in another font or carry the page number, unlike the body.
    """
    if len(pages) < 4:
        return set()
    found: set[tuple[int, int]] = set()
    for top in (True, False):
        rows: dict[int, tuple[int, list[int]]] = {}
        for page in pages:
            row = _outermost_row(page, usual, top=top)
            if row:
                rows[page.number] = row
        heights = Counter(height for height, _ in rows.values())
        need = max(4, 0.4 * len(pages))
        for number, (height, indices) in rows.items():
            if sum(heights[height + delta] for delta in (-1, 0, 1)) >= need:
                found.update((number, index) for index in indices)
    return found


def _outermost_row(page: PageLines, usual: Profile, *, top: bool) -> tuple[int, list[int]] | None:
    """Height class and line indices of the first or last row, if it can be a running head."""
    if not page.lines:
        return None
    edge = (
        min(page.lines, key=lambda line: line.box.top)
        if top
        else max(page.lines, key=lambda line: line.box.bottom)
    )
    row = [
        index
        for index, line in enumerate(page.lines)
        if line.box.overlap_y(edge.box) > 0.4 * min(line.box.height, edge.box.height)
    ]
    texts = [page.lines[index].text for index in row]
    if not _at_edge(edge, page.height, _EDGE) or sum(map(len, texts)) > _MAX_HEAD_CHARS:
        return None
    if any(SENTENCE_END.search(text) and len(text) > 30 for text in texts):
        return None
    rest = [line for index, line in enumerate(page.lines) if index not in row]
    if not rest or not _own_style([page.lines[index] for index in row], usual):
        return None
    gap = (
        min(line.box.top for line in rest) - max(page.lines[i].box.bottom for i in row)
        if top
        else min(page.lines[i].box.top for i in row) - max(line.box.bottom for line in rest)
    )
    return (round(edge.box.middle / 3), row) if gap > 0.8 * edge.em else None


def _own_style(row: Sequence[Line], usual: Profile) -> bool:
    """Whether a row differs from body text as running heads do."""
    numbered = len(row) > 1 and any(PAGE_NUMBER.match(line.text) for line in row)
    small = all(line.size < 0.93 * usual.size for line in row)
    slanted = all(line.italic for line in row) and usual.italic_share < 0.3
    small_bold = all(line.bold and line.size <= usual.size for line in row)
    return numbered or small or slanted or (small_bold and usual.bold_share < 0.3)
