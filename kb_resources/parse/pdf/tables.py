"""Finds the tables of one flow: ruled grids first, then open tables, then contents and gaps.

Belongs here: choosing regions and taking each word once. How a region becomes a table is in
`grid` and `gaps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kb_resources.parse.pdf.cells import TableFound
from kb_resources.parse.pdf.columns import find_gutters
from kb_resources.parse.pdf.gaps import contents_table, ends_in_page, gap_table, page_edge
from kb_resources.parse.pdf.grid import grid_table
from kb_resources.parse.pdf.ink import Box, Flow, Word, enclose
from kb_resources.parse.pdf.lines import Line, lines_of, rows_of
from kb_resources.parse.pdf.marks import CAPTION, LEADERS, MARKER
from kb_resources.parse.pdf.ruling import Ruling, frames_of, ruling_of, stacks_of

_MAX_STACK_GAP = 0.6
_ROW_GAP_EM = 2.2
_MIN_CONTENTS = 3
_FEW_COLUMNS = 2
_ENTRY_GAP_EM = 2.6


def take_tables(
    flow: Flow, turned: Sequence[Word] = ()
) -> tuple[list[TableFound], list[Line], list[Word]]:
    """Tables of a flow, the lines of the words outside them, and the turned words they took.

    Args:
        flow: one direction of writing.
        turned: words in other directions that may stand in cells; only for upright flows.
    """
    ruling = ruling_of(flow.rules)
    tables: list[TableFound] = []
    taken_turned: list[Word] = []
    words = list(flow.words)
    for frame in sorted(frames_of(ruling), key=lambda frame: frame.box.top):
        found = _finer(grid_table(frame, words, turned), frame)
        if found is not None:
            tables.append(found[0])
            words, turned = _without(words, found[1]), _without(turned, found[1])
            taken_turned.extend(w for w in found[1] if w.shown is not w.box)
    for region in _open_regions(ruling, flow.height):
        inside = [w for w in words if region.holds((w.box.left + w.box.right) / 2, w.box.middle)]
        table = gap_table(inside, ruling.horizontal, ruled=True) if len(inside) >= 4 else None
        if table is not None:
            tables.append(table)
            words = _without(words, inside)
    for rows in _contents(words):
        table = contents_table(rows)
        if table is not None:
            tables.append(table)
            words = _without(words, [word for row in rows for word in row])
    flow = replace(flow, words=tuple(words))
    lines = lines_of(flow)
    aligned = [
        (table, region_words)
        for region_words in _aligned(flow, lines)
        if (table := gap_table(region_words, ruling.horizontal, ruled=False)) is not None
    ]
    if not aligned:
        return tables, lines, taken_turned
    taken = [word for _, region_words in aligned for word in region_words]
    rest = replace(flow, words=tuple(_without(words, taken)))
    return [*tables, *(table for table, _ in aligned)], lines_of(rest), taken_turned


def _finer(
    found: tuple[TableFound, list[Word]] | None, frame: Ruling
) -> tuple[TableFound, list[Word]] | None:
    """A grid of few columns, or the columns that white strips show inside it if they are more.

    Some tables have a wall behind the first column only.
    """
    if found is None or len(found[0].rows[0]) > _FEW_COLUMNS:
        return found
    upright = [word for word in found[1] if word.box == word.shown]
    if len(upright) < len(found[1]):
        return found
    split = gap_table(upright, frame.horizontal, ruled=True)
    if split is None or len(split.rows[0]) <= len(found[0].rows[0]):
        return found
    return split, found[1]


def _without(words: Sequence[Word], taken: Sequence[Word]) -> list[Word]:
    gone = {id(word) for word in taken}
    return [word for word in words if id(word) not in gone]


def _open_regions(ruling: Ruling, height: float) -> list[Box]:
    """Regions between horizontal rules of one extent, the largest first."""
    regions = []
    for stack in stacks_of(ruling):
        box = enclose(stack)
        if 8 < box.height < _MAX_STACK_GAP * height or len(stack) >= 3:
            regions.append(Box(box.left - 4, box.top - 1, box.right + 4, box.bottom + 1))
    return sorted(regions, key=lambda region: -region.height)


def _contents(words: Sequence[Word]) -> list[list[list[Word]]]:
    """Runs of rows that mostly end in leader dots and a page, or in a page under those."""
    if sum(word.text[:1] in "._…·" for word in words) < _MIN_CONTENTS and not any(
        LEADERS.search(word.text) for word in words
    ):
        return []
    rows = rows_of(list(words))
    dotted = [LEADERS.search(" ".join(word.text for word in row)) is not None for row in rows]
    if sum(dotted) < _MIN_CONTENTS:
        return []
    edge = page_edge(row for row, has in zip(rows, dotted, strict=True) if has)
    runs: list[list[list[Word]]] = []
    run: list[list[Word]] = []
    loose = 0
    for row, has in zip(rows, dotted, strict=True):
        entry = has or ends_in_page(row, edge)
        near = bool(run) and row[0].box.top - run[-1][0].box.bottom < _ENTRY_GAP_EM * row[0].size
        if entry and (near or not run):
            run.append(row)
            loose = 0
        elif near and loose < 1 and row[0].box.top - run[-1][0].box.bottom < row[0].size:
            run.append(row)  # a title over two lines
            loose += 1
        else:
            runs.append(run[: len(run) - loose])
            run, loose = ([row] if entry else []), 0
    runs.append(run[: len(run) - loose])
    return [
        found
        for found in runs
        if sum(bool(LEADERS.search(" ".join(w.text for w in row))) for row in found)
        >= _MIN_CONTENTS
    ]


def _aligned(flow: Flow, lines: list[Line]) -> list[list[Word]]:
    """Words of neighbouring rows that hold several separate pieces each, per text column."""
    gutters = find_gutters(lines, flow.width)
    found: list[list[Word]] = []
    for column in range(len(gutters.at) + 2):
        part = [line for line in lines if gutters.column(line) == column]
        found.extend(
            [w for w in flow.words if box.holds((w.box.left + w.box.right) / 2, w.box.middle)]
            for box in _piecewise(part)
        )
    return found


def _piecewise(lines: Sequence[Line]) -> list[Box]:
    """Boxes around at least three rows in a run of which most hold two pieces or more."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.box.middle):
        if rows and abs(line.box.middle - rows[-1][0].box.middle) < 0.5 * line.em:
            rows[-1].append(line)
        else:
            rows.append([line])
    boxes: list[Box] = []
    run: list[list[Line]] = []
    single = 0

    def close() -> None:
        kept = run[: len(run) - single] if single else run
        if sum(len(row) >= 2 for row in kept) >= 3:
            boxes.append(enclose(line.box for row in kept for line in row))

    for row in rows:
        if run:
            previous = run[-1]
            gap = min(p.box.top for p in row) - max(p.box.bottom for p in previous)
            if gap > _ROW_GAP_EM * row[0].em or (len(row) < 2 and single >= 2):
                close()
                run, single = [], 0
        if any(CAPTION.match(part.text) for part in row):
            close()  # a caption ends a table, and is no row of it
            run, single = [], 0
        elif len(row) >= 2 and not _is_item(row):
            run.append(row)
            single = 0
        elif run:
            run.append(row)
            single += 1
    if run:
        close()
    return boxes


def _is_item(row: Sequence[Line]) -> bool:
    first = min(row, key=lambda line: line.box.left)
    return len(row) == 2 and len(first.text) < 5 and MARKER.match(first.text) is not None
