"""Long tables cut into table blocks of bounded size, header rows repeated.

Belongs here: cutting and shaping rows, shared by CSV, spreadsheets, HTML and office tables. Writing
pipes is `body.py`'s work. A header with each part follows https://www.w3.org/WAI/tutorials/tables/.
What comes out stays in proportion to what came in: one row of thousands of cells does not widen
thousands of others, and a header longer than the rows it would stand over is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kb_resources.parse.draft import DraftBlock

MAX_ROWS = 500
"""Most data rows in one table block."""
# Cells that padding may add: so many for each that is there, and these in any case.
_PADDING = 3
_FREE_CELLS = 2_000


def table_drafts(
    rows: Sequence[Sequence[str]],
    header_rows: int,
    locator: Callable[[int, int], str | None],
    *,
    page: int | None = None,
) -> list[DraftBlock]:
    """Cut rows into table drafts.

    Args:
        rows: cells as text; short rows are padded, but in tables of their own where that would
            make many times the cells.
        header_rows: how many of the first rows are column headers.
        locator: from the 1-based first and last row of a part to its locator.
        page: 1-based page or slide.

    Returns:
        Drafts in order; none for an empty table.
    """
    drafts: list[DraftBlock] = []
    for first, run in _runs(rows):
        headers = min(header_rows, len(run)) if first == 0 else 0
        drafts += _run_drafts(run, headers, first, locator, page)
    return drafts


def is_sparse(cells: int, rows: int, width: int) -> bool:
    """Whether padding all rows to one width makes many times the cells that there are."""
    return rows * width > (1 + _PADDING) * cells + _FREE_CELLS


def _runs(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, Sequence[Sequence[str]]]]:
    """Rows that can stand in one table, each run with the number of its first row, from 0."""
    widths = [len(row) for row in rows]
    if not is_sparse(sum(widths), len(rows), max(widths, default=0)):
        yield 0, rows
        return
    first, least, most = 0, widths[0], widths[0]
    for at, width in enumerate(widths):
        if max(most, width) > (1 + _PADDING) * max(1, min(least, width)):
            yield first, rows[first:at]
            first, least, most = at, width, width
        least, most = min(least, width), max(most, width)
    yield first, rows[first:]


def _run_drafts(
    rows: Sequence[Sequence[str]],
    header_rows: int,
    skipped: int,
    locator: Callable[[int, int], str | None],
    page: int | None,
) -> Iterator[DraftBlock]:
    width = max((len(row) for row in rows), default=0)
    if not width:
        return
    square = [tuple(row) + ("",) * (width - len(row)) for row in rows]
    header, data = tuple(square[:header_rows]), square[header_rows:]
    for start in range(0, len(data), MAX_ROWS) if data else [0]:
        part = tuple(data[start : start + MAX_ROWS])
        first = 1 if start == 0 else header_rows + start + 1
        above = header if start == 0 or _length(header) <= _length(part) else ()
        yield DraftBlock(
            "table",
            "",
            page=page,
            rows=above + part,
            header_rows=len(above),
            locator=locator(skipped + first, skipped + header_rows + start + len(part)),
        )


def _length(rows: Sequence[Sequence[str]]) -> int:
    """Code points of a row with its marks."""
    return sum(len(cell) + 3 for row in rows for cell in row)
