"""HTML tables: layout or data, and the grid of a data table.

Belongs here: telling tables that only place things from tables that say something, spans, headers.
Cutting long tables is `parse.tables`'. Spans follow
https://html.spec.whatwg.org/multipage/tables.html#forming-a-table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kb_resources.parse.tables import is_sparse

_MAX_SPAN = 1_000
_BLOCKS = ("h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "blockquote", "article", "section")
_SECTIONS = ("thead", "tbody", "tfoot")


def is_layout(table: Any) -> bool:
    """Whether a table only arranges blocks on the page, so that its cells are read one by one."""
    if (table.get("role") or "").lower() in {"presentation", "none"}:
        return True
    if any(next(table.iterdescendants(tag), None) is not None for tag in _BLOCKS):
        return True
    if next(table.iterdescendants("th"), None) is not None:
        return False
    widths = [len(cells) for row in _rows(table) if (cells := _cells(row))]
    return max(widths, default=0) <= 1


def table_rows(table: Any, text_of: Callable[[Any], str]) -> tuple[list[list[str]], int]:
    """The grid of a data table.

    Args:
        table: lxml element.
        text_of: text of one cell element.

    Returns:
        Rows, and how many of the first are headers. A spanning cell's text stands in its first
        place only; empty rows and columns are left out.
    """
    grid: list[dict[int, str]] = []
    taken: dict[int, int] = {}  # column → rows still covered by a span from above
    header_rows, in_header = 0, True
    for row in _rows(table):
        line: dict[int, str] = {}
        column = 0
        cells = _cells(row)
        for cell in cells:
            while taken.get(column, 0) > 0:
                column += 1
            line[column] = text_of(cell)
            height = _span(cell.get("rowspan"))
            for covered in range(column, column + _span(cell.get("colspan"))):
                line.setdefault(covered, "")
                if height > 1:
                    taken[covered] = height
            column = max(line) + 1
        taken = {c: n - 1 for c, n in taken.items() if n > 1}
        if not any(text.strip() for text in line.values()):
            continue
        in_header = in_header and _is_header(row, cells)
        header_rows += in_header
        grid.append(line)
    used = sorted({c for line in grid for c, text in line.items() if text.strip()})
    filled = sum(bool(text.strip()) for line in grid for text in line.values())
    if is_sparse(filled, len(grid), len(used)):
        # Spans can put each row's cells into columns of its own.
        said = [[line[c] for c in sorted(line) if line[c].strip()] for line in grid]
        return said, min(header_rows, 5)
    return [[line.get(c, "") for c in used] for line in grid], min(header_rows, 5)


def stray_texts(table: Any, text_of: Callable[[Any], str]) -> Iterator[str]:
    """Text inside a table but in none of its cells, which browsers show above it."""
    for element in _frame(table):
        yield element.text or ""
        for child in element:
            known = child.tag in {"td", "th", "tr", "caption", "colgroup", "col", *_SECTIONS}
            if not known and isinstance(child.tag, str):
                yield text_of(child)
            yield child.tail or ""


def _frame(table: Any) -> Iterator[Any]:
    """The elements that only hold rows and cells."""
    yield table
    for child in table:
        if child.tag in _SECTIONS:
            yield child
            yield from child.iterchildren("tr")
        elif child.tag == "tr":
            yield child


def _is_header(row: Any, cells: list[Any]) -> bool:
    if row.getparent().tag == "thead":
        return True
    return bool(cells) and all(cell.tag == "th" for cell in cells)


def _rows(table: Any) -> Iterator[Any]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in _SECTIONS:
            yield from child.iterchildren("tr")


def _cells(row: Any) -> list[Any]:
    return [cell for cell in row if cell.tag in {"td", "th"}]


def _span(text: str | None) -> int:
    return min(max(int(text), 1), _MAX_SPAN) if text and text.strip().isdecimal() else 1
