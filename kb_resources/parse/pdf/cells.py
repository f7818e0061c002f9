"""Cells to a table: the shape shared by ruled grids and tables found by gaps.

Belongs here: text of a cell from its words, trimming of empty rows and columns, the header.
Not here: where cells come from (`grid`, `gaps`).
Spanning cells repeat their text as docling's Markdown does: https://docling-project.github.io/docling/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kb_resources.parse.pdf.ink import Box, Word, enclose
from kb_resources.parse.pdf.lines import line_of, rows_of
from kb_resources.parse.pdf.mend import join_lines


@dataclass(frozen=True, slots=True)
class TableFound:
    """A table on a page.

    Attributes:
        rows: cell texts, all rows equally long.
        header_rows: number of header rows at the top.
        confidence: 0..1.
        box: place in the flow frame.
        shown: place in the page frame.
        size: usual font size in points.
    """

    rows: tuple[tuple[str, ...], ...]
    header_rows: int
    confidence: float
    box: Box
    shown: Box
    size: float


def cell_text(words: Sequence[Word]) -> str:
    """Words of one cell as running text."""
    if len(words) == 1:
        return words[0].text
    return join_lines(line_of(row).text for row in rows_of(list(words)))


def build_table(
    rows: Sequence[Sequence[str]],
    words: Iterable[Word],
    *,
    header_rows: int,
    confidence: float,
    frame: Box | None = None,
) -> TableFound | None:
    """A table without its empty rows and columns; None when nothing two-dimensional is left."""
    filled_rows = [index for index, row in enumerate(rows) if any(row)]
    if not filled_rows:
        return None
    width = len(rows[0])
    filled_columns = [c for c in range(width) if any(rows[r][c] for r in filled_rows)]
    if len(filled_rows) < 2 or len(filled_columns) < 2:
        return None
    used = list(words)
    box = enclose(word.box for word in used)
    sizes = sorted(word.size for word in used)
    header = sum(index < header_rows for index in filled_rows)
    return TableFound(
        rows=tuple(tuple(rows[r][c] for c in filled_columns) for r in filled_rows),
        header_rows=min(header, len(filled_rows) - 1),
        confidence=confidence,
        box=enclose((box, frame)) if frame is not None else box,
        shown=enclose(word.shown for word in used),
        size=sizes[len(sizes) // 2],
    )
