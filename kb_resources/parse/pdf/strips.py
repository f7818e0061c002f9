"""White strips that run down through many rows of words: gutters too narrow to be gaps.

Belongs here: strips found from words, before lines exist. A space between words is white in one
row; only a gutter is white at the same place in row after row. Not here: what the columns are
(`columns`).
Compare "white streams" in Pavlidis and Zhou, "Page segmentation by white streams" (1991).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kb_resources.parse.pdf.ink import Box, Word

_MIN_GAP_EM = 0.22
_WIDE_EM = 0.45
_MIN_ROWS = 6
_MIN_ROWS_NARROW = 11
_MIN_COLUMN_EM = 5.0
_LASTING_ROWS = 4
_MAX_NARROW = 3
_ROW_REACH_EM = 2.6


@dataclass(slots=True)
class _Strip:
    left: float
    right: float
    top: float
    bottom: float
    rows: int
    em: float


def white_strips(rows: Sequence[Sequence[Word]]) -> list[Box]:
    """Strips with text on both sides in rows that follow each other.

    Six rows are enough for a strip of half an em, a narrower one needs eleven.

    Args:
        rows: words by base line, from top to bottom, each from left to right.
    """
    done: list[_Strip] = []
    active: list[_Strip] = []
    for row in rows:
        top = min(word.box.top for word in row)
        bottom = max(word.box.bottom for word in row)
        em = max(row[0].size, 4.0)
        ended = [strip for strip in active if top - strip.bottom > _ROW_REACH_EM * em]
        done.extend(ended)
        active = [strip for strip in active if top - strip.bottom <= _ROW_REACH_EM * em]
        active = _advance(active, row, top, bottom, em, done)
    done.extend(active)
    wide = [s for s in done if s.rows >= _MIN_ROWS and s.right - s.left >= _WIDE_EM * s.em]
    narrow = [s for s in done if s.rows >= _MIN_ROWS_NARROW and s not in wide]
    # Lines made from one template have white between all their words; a page has few gutters.
    few = [s for s in narrow if sum(_side_by_side(s, other) for other in narrow) <= _MAX_NARROW]
    return [Box(s.left, s.top, s.right, s.bottom) for s in (*wide, *few)]


def _side_by_side(one: _Strip, other: _Strip) -> bool:
    return min(one.bottom, other.bottom) > max(one.top, other.top)


def _advance(
    active: list[_Strip],
    row: Sequence[Word],
    top: float,
    bottom: float,
    em: float,
    done: list[_Strip],
) -> list[_Strip]:
    """Carry strips over one row: narrowed by its gaps, kept beside it, or ended by its words."""
    gaps, joints = [], []
    reach = row[0].box.right
    for word in row[1:]:
        joints.append((reach, word.box.left))
        if word.box.left - reach >= _MIN_GAP_EM * em:
            gaps.append((reach, word.box.left))
        reach = max(reach, word.box.right)
    start, end = row[0].box.left, reach
    kept: list[_Strip] = []
    used: set[int] = set()
    for strip in active:
        if strip.right <= start + 1 or strip.left >= end - 1:
            kept.append(strip)  # the row has text on one side only
            continue
        counts = _between_columns(strip, active, start, end, em)
        if any(abs(left - strip.right) <= 1 and before <= left + 2 for before, left in joints):
            kept.append(replace(strip, bottom=bottom, rows=strip.rows + counts))
            continue  # text of the left column touches the right one
        for index, (left, right) in enumerate(gaps):
            narrow = max(strip.left, left), min(strip.right, right)
            if narrow[1] - narrow[0] >= _MIN_GAP_EM * em:
                kept.append(_Strip(*narrow, strip.top, bottom, strip.rows + counts, strip.em))
                used.add(index)
                break
        else:
            done.append(strip)
    kept.extend(
        _Strip(left, right, top, bottom, 1, em)
        for index, (left, right) in enumerate(gaps)
        if index not in used
    )
    return kept


def _between_columns(
    strip: _Strip, others: Sequence[_Strip], start: float, end: float, em: float
) -> bool:
    """Whether wide text stands on both sides: a gutter, not the space after a common first word."""
    lasting = [other for other in others if other.rows >= _LASTING_ROWS]
    before = max((o.right for o in lasting if o.right <= strip.left), default=start)
    after = min((o.left for o in lasting if o.left >= strip.right), default=end)
    least = _MIN_COLUMN_EM * em
    return strip.left - before >= least and after - strip.right >= least
