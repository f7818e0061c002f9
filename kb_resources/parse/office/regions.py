"""Regions of filled cells on a sheet: what touches is one table.

Belongs here: grouping sparse cells; nothing here knows openpyxl. Cells that touch, corners
included, belong together (https://en.wikipedia.org/wiki/Connected-component_labeling), so that a
table may have gaps while an empty row or column parts two tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_NUMBER = re.compile(r"[-+(]?[€$£¥]?\s?[\d.,'\s]+\s?[%€$£¥)]?")
_MAX_FILL = 20  # a region's rectangle may hold this many times its filled cells, plus a thousand


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of cells.

    Attributes:
        top: 1-based first row.
        left: 1-based first column.
        rows: texts, empty cells as "", every row equally long.
        gap: number of head rows above an empty row that `rows` leaves out; 0 without a gap.
    """

    top: int
    left: int
    rows: tuple[tuple[str, ...], ...]
    gap: int = 0

    def range_of(self, first: int, last: int) -> str:
        """A1 reference of rows `first` to `last` (1-based within the region)."""
        right = self.left + len(self.rows[0]) - 1
        top, bottom = (
            self.top + row - 1 + (1 if self.gap and row > self.gap else 0)
            for row in (first, min(last, len(self.rows)))
        )
        start = f"{column_name(self.left)}{top}"
        end = f"{column_name(right)}{bottom}"
        return start if start == end else f"{start}:{end}"

    def has_header(self) -> bool:
        """Whether the first row is all text and a later row is not, or it is full and distinct."""
        first = [cell.strip() for cell in self.rows[0]]
        filled = [cell for cell in first if cell]
        if not filled or any(_NUMBER.fullmatch(cell) for cell in filled):
            return False
        if any(_NUMBER.fullmatch(c.strip()) for row in self.rows[1:] for c in row if c.strip()):
            return len(filled) >= max(len(first) - 1, 1)
        return len(filled) == len(first) and len(set(filled)) == len(filled)

    def is_heading_of(self, below: Region) -> bool:
        """Whether this is a line or two of column heads parted from its table by one empty row."""
        return (
            len(self.rows) <= 2
            and below.top == self.top + len(self.rows) + 1
            and self.left >= below.left
            and self.left + len(self.rows[0]) <= below.left + len(below.rows[0])
            and len(self.rows[0]) > 1
            and len(below.rows) > 1
            and not below.has_header()
            and not any(_NUMBER.fullmatch(c.strip()) for row in self.rows for c in row if c.strip())
        )

    def over(self, below: Region) -> Region:
        """This region and the one below it as one, the empty row between left out of the rows."""
        width, shift = len(below.rows[0]), self.left - below.left
        heads = tuple(("",) * shift + row + ("",) * (width - shift - len(row)) for row in self.rows)
        return Region(self.top, below.left, heads + below.rows, gap=len(self.rows))


def regions(
    cells: Mapping[tuple[int, int], str], merged: Iterable[tuple[int, int, int, int]] = ()
) -> list[Region]:
    """Group filled cells.

    Args:
        cells: (row, column), 1-based → text, not blank.
        merged: (top, left, bottom, right) of merged ranges whose first cell is filled; the whole
            range counts as touching its neighbours.

    Returns:
        Regions from top to bottom, then left to right. A region that is nearly empty (cells along
        a diagonal) is cut into its rows.
    """
    groups = _Groups()
    for row, column in cells:
        groups.add((row, column))
    for top, left, bottom, right in merged:
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                groups.add((row, column))
                groups.join((row, column), (top, left))
    found = []
    for members in groups.members():
        filled = {place: cells[place] for place in members if place in cells}
        found += _rectangles(filled)
    return _headed(sorted(found, key=lambda region: (region.top, region.left)))


def _headed(found: list[Region]) -> list[Region]:
    """Regions with column heads that stand one empty row above joined to their tables."""
    by_top: dict[int, list[Region]] = {}
    for region in found:
        by_top.setdefault(region.top, []).append(region)
    joined: dict[Region, Region] = {}
    taken: set[Region] = set()
    for head in found:
        below = next(
            (r for r in by_top.get(head.top + len(head.rows) + 1, ()) if head.is_heading_of(r)),
            None,
        )
        if below is not None and below not in taken and head not in taken:
            joined[head] = head.over(below)
            taken.add(below)
    return [joined.get(region, region) for region in found if region not in taken]


def column_name(number: int) -> str:
    """Spreadsheet name of a 1-based column: 1 is A, 27 is AA."""
    name = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def _rectangles(filled: Mapping[tuple[int, int], str]) -> list[Region]:
    rows = [row for row, _ in filled]
    columns = [column for _, column in filled]
    top, bottom, left, right = min(rows), max(rows), min(columns), max(columns)
    if (bottom - top + 1) * (right - left + 1) > len(filled) * _MAX_FILL + 1000:
        by_row: dict[int, dict[tuple[int, int], str]] = {}
        for place, text in filled.items():
            by_row.setdefault(place[0], {})[place] = text
        if len(by_row) > 1:
            return [region for part in by_row.values() for region in _rectangles(part)]
    grid = tuple(
        tuple(filled.get((row, column), "") for column in range(left, right + 1))
        for row in range(top, bottom + 1)
    )
    return [Region(top, left, grid)]


class _Groups:
    """Union-find over cells; a cell joins its eight neighbours."""

    def __init__(self) -> None:
        self._parent: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, place: tuple[int, int]) -> None:
        if place in self._parent:
            return
        self._parent[place] = place
        row, column = place
        for other_row in (row - 1, row, row + 1):
            for other_column in (column - 1, column, column + 1):
                other = (other_row, other_column)
                if other != place and other in self._parent:
                    self.join(place, other)

    def join(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        first, second = self._find(one), self._find(other)
        if first != second:
            self._parent[max(first, second)] = min(first, second)

    def members(self) -> list[list[tuple[int, int]]]:
        groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place in self._parent:
            groups.setdefault(self._find(place), []).append(place)
        return list(groups.values())

    def _find(self, place: tuple[int, int]) -> tuple[int, int]:
        root = place
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[place] != root:
            self._parent[place], place = root, self._parent[place]
        return root
