"""Tables drawn with rules in both directions: cells are where no wall stands between.

Belongs here: grid lines, merged cells, words to cells. Not here: tables without walls (`gaps`).
Compare the cell reconstruction in https://github.com/tabulapdf/tabula-java (MIT).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kb_resources.parse.pdf.cells import TableFound, build_table, cell_text
from kb_resources.parse.pdf.ink import Box, Word
from kb_resources.parse.pdf.ruling import Ruling

_SAME = 3.0
_MAX_CELLS = 20_000
_REPEAT_CHARS = 60
_MIN_FILLED = 0.3
_PROSE_CHARS = 500
_FEW_CELLS = 10


def grid_table(
    frame: Ruling, words: Sequence[Word], turned: Sequence[Word] = ()
) -> tuple[TableFound, list[Word]] | None:
    """The table inside a frame of rules and the words that it took.

    Args:
        frame: rules that touch each other.
        words: of the same flow as the rules.
        turned: words of an upright page that are written upwards or downwards, as in the heads of
            narrow columns; placed by where they are shown.

    Returns:
        None for frames that are no table: single boxes, charts, page layouts.
    """
    outer = frame.box
    xs = _positions([w.left for w in frame.vertical] + [outer.left, outer.right])
    ys = _positions([h.top for h in frame.horizontal] + [outer.top, outer.bottom])
    columns, rows = len(xs) - 1, len(ys) - 1
    if columns < 2 or rows < 2 or columns * rows > _MAX_CELLS:
        return None
    inside = [w for w in words if outer.holds((w.box.left + w.box.right) / 2, w.box.middle, 1.0)]
    if len(inside) < 4:
        return None
    root = _merged(frame, xs, ys)
    held: defaultdict[int, list[Word]] = defaultdict(list)
    for word in inside:
        column = _slot(xs, (word.box.left + word.box.right) / 2)
        row = _slot(ys, word.box.middle)
        held[root[row * columns + column]].append(word)
    texts = {cell: cell_text(content) for cell, content in held.items()}
    upright = [w for w in turned if outer.holds((w.shown.left + w.shown.right) / 2, w.shown.middle)]
    for cell, text in _turned_texts(upright, xs, ys, root).items():
        texts[cell] = f"{texts.get(cell, '')} {text}".strip()
    if not _is_table(texts, set(root)):
        return None
    table = build_table(
        _spread(root, texts, rows, columns),
        [*inside, *(replace(w, box=w.shown) for w in upright)],
        header_rows=_header(root, rows, columns),
        confidence=0.95,
        frame=outer,
    )
    return (table, [*inside, *upright]) if table is not None else None


def _turned_texts(
    words: Sequence[Word], xs: list[float], ys: list[float], root: list[int]
) -> dict[int, str]:
    """Texts of turned words by cell, each read in its own direction."""
    held: defaultdict[int, list[Word]] = defaultdict(list)
    for word in words:
        column = _slot(xs, (word.shown.left + word.shown.right) / 2)
        held[root[_slot(ys, word.shown.middle) * (len(xs) - 1) + column]].append(word)
    return {cell: cell_text(content) for cell, content in held.items()}


def _positions(values: list[float]) -> list[float]:
    """Distinct positions, those closer than a rule's width taken as one."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > _SAME:
            found.append(value)
    return found


def _slot(edges: Sequence[float], value: float) -> int:
    for index in range(len(edges) - 2, 0, -1):
        if value >= edges[index]:
            return index
    return 0


def _merged(frame: Ruling, xs: list[float], ys: list[float]) -> list[int]:
    """For each grid place the first place of its cell; places without a wall between are one."""
    columns, rows = len(xs) - 1, len(ys) - 1
    root = list(range(columns * rows))

    def find(place: int) -> int:
        while root[place] != place:
            place = root[place]
        return place

    def unite(one: int, other: int) -> None:
        first, second = sorted((find(one), find(other)))
        root[second] = first

    for row in range(rows):
        middle = (ys[row] + ys[row + 1]) / 2
        for column in range(columns):
            centre = (xs[column] + xs[column + 1]) / 2
            place = row * columns + column
            if column + 1 < columns and not _wall(frame.vertical, xs[column + 1], middle):
                unite(place, place + 1)
            if row + 1 < rows and not _floor(frame.horizontal, ys[row + 1], centre):
                unite(place, place + columns)
    return [find(place) for place in range(len(root))]


def _wall(walls: Sequence[Box], x: float, y: float) -> bool:
    return any(abs(wall.left - x) <= _SAME and wall.top <= y <= wall.bottom for wall in walls)


def _floor(floors: Sequence[Box], y: float, x: float) -> bool:
    return any(abs(floor.top - y) <= _SAME and floor.left <= x <= floor.right for floor in floors)


def _is_table(texts: dict[int, str], cells: set[int]) -> bool:
    filled = [text for text in texts.values() if text]
    if len(filled) < 3 or len(filled) < _MIN_FILLED * len(cells):
        return False
    # A few cells of running prose are a page's layout, not a table.
    allowed = _PROSE_CHARS if len(filled) >= _FEW_CELLS else _PROSE_CHARS / 4
    return sum(len(text) for text in filled) < allowed * len(filled)


def _spread(root: Sequence[int], texts: dict[int, str], rows: int, columns: int) -> list[list[str]]:
    """Cell texts by row; a short text of a spanning cell stands in every place it covers."""
    table = []
    for row in range(rows):
        line = []
        for column in range(columns):
            place = row * columns + column
            text = texts.get(root[place], "")
            line.append(text if root[place] == place or len(text) <= _REPEAT_CHARS else "")
        table.append(line)
    return table


def _header(root: Sequence[int], rows: int, columns: int) -> int:
    """One header row, or as many as the tallest cell of the first row covers."""
    depth = 1
    for column in range(columns):
        row = 1
        while row < rows and root[row * columns + column] < columns:
            row += 1
        depth = max(depth, row)
    return depth if depth <= 3 else 1
