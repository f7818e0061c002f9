"""Draft blocks: what a reader of one format hands to the serialiser.

Belongs here: the shape between the format readers and `body.py`. Texts are plain; Markdown marks,
escapes, offsets and heading paths are the serialiser's work. Kinds and boxes come from `model`.
Table cells follow the row and column reading of https://github.github.com/gfm/#tables-extension-.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb_resources.model import BBox, BlockKind


@dataclass(frozen=True, slots=True)
class DraftBlock:
    """One unit in reading order, before it has a place in the body.

    Attributes:
        kind: what the unit is.
        text: plain text without Markdown marks (no `#`, no bullet, no fence). Line breaks only in
            code. Empty for tables, which carry `rows`.
        page: 1-based page, or None where the format has none.
        bbox: place on the page, or None.
        level: 1 to 6 for headings; nesting depth from 1 for list items; else None.
        marker: for list items `-` or the ordered marker as the document prints it ("3.", "b)").
        rows: table cells, plain text, every row equally long; empty for other kinds.
        header_rows: how many of the first `rows` are column headers.
        locator: place in the document's own terms, or None where the serialiser derives it.
        continues: True when this goes on the paragraph of the block before (page break).
        confidence: 0..1, below 1 where the unit was rebuilt by guesswork.
        language: programming language of a code block when known.
    """

    kind: BlockKind
    text: str
    page: int | None = None
    bbox: BBox | None = None
    level: int | None = None
    marker: str | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    header_rows: int = 0
    locator: str | None = None
    continues: bool = False
    confidence: float = 1.0
    language: str | None = None
