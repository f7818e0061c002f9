"""What parsing makes of a document: blocks, body, pages, hidden text, coverage.

Belongs here: the shapes only. Reading files and writing the body is `parse`'s work.
The vocabulary follows docs/glossary.md; block kinds follow docling's item labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

BlockKind = Literal[
    "heading", "paragraph", "list_item", "table", "code", "caption", "footnote", "figure_text"
]


@dataclass(frozen=True, slots=True)
class BBox:
    """A rectangle on a page in points (1/72 inch), origin at the page's top left."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Block:
    """One parsed unit in reading order.

    Invariants: `body_bytes[byte_start:byte_end].decode() == text` and
    `page_text[char_start:char_end] == text`, where the page text of a document without pages is
    the whole body.

    Attributes:
        kind: what the block is.
        text: Markdown as it stands in the body, marks included (`## `, `- `, table pipes).
        byte_start: start in the body, UTF-8 bytes.
        byte_end: end in the body, UTF-8 bytes, exclusive.
        char_start: start in the page text, code points.
        char_end: end in the page text, code points, exclusive.
        page: 1-based page, or None where the format has none.
        bbox: place on the page, or None.
        heading_path: headings above this block from the root down, plain text without marks;
            a heading block's own text is the last element of its own path.
        locator: place in the document's own terms ("§ 4 Ort der Verarbeitung", "Page 3",
            "Sheet Rates, A1:D9", "Slide 2", "Part 1.2"), or None.
        level: 1 to 6 for headings, else None.
        continues: True when the block goes on the paragraph of the block before (page break).
        confidence: 0..1, below 1 for blocks rebuilt by guesswork (tables without rules).
    """

    kind: BlockKind
    text: str
    byte_start: int
    byte_end: int
    char_start: int
    char_end: int
    page: int | None = None
    bbox: BBox | None = None
    heading_path: tuple[str, ...] = ()
    locator: str | None = None
    level: int | None = None
    continues: bool = False
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Where one page's text lies in the body.

    Attributes:
        page: 1-based number.
        byte_start: in the body, UTF-8 bytes.
        byte_end: exclusive.
        char_start: in the body, code points.
        char_end: exclusive.
    """

    page: int
    byte_start: int
    byte_end: int
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class HiddenText:
    """Text that a reader does not see, for the scan only; never part of the body.

    Attributes:
        kind: machine name of the way it is hidden ("html_comment", "display_none", "attribute",
            "white_text", "tiny_text", "off_page", "metadata", "docx_comment", "hidden_sheet", …).
        place: where it was, for a person ("page 3", "xl/comments1.xml", "attribute alt of <img>").
        text: the text as found, invisible characters kept.
    """

    kind: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class RemovedLine:
    """A line that the noise filter took out.

    Attributes:
        page: 1-based page or None.
        text: the line.
        reason: "page_number", "running_head", "cookie_notice", "navigation".
    """

    page: int | None
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecognisedPage:
    """A page whose text comes from a picture of it (OCR).

    Attributes:
        page: 1-based page.
        language: the recogniser's language pack.
        confidence: the recogniser's own, mean over characters, 0..1.
        agreement: share of words that the second opinion reads too, 0..1; None where there was
            no second opinion.
        second: who gave the second opinion ("tesseract psm 6", "rapidocr"), "" for nobody.
    """

    page: int
    language: str
    confidence: float
    agreement: float | None
    second: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the source became text.

    Attributes:
        pages: number of pages, 0 where the format has none.
        pages_with_text: pages that gave at least one block.
        pages_ocr: pages read by OCR.
        pages_needing_ocr: 1-based pages that hold an image or broken fonts and no usable text.
        tables: number of tables.
        table_confidences: how sure each table's grid is, 0..1, in reading order.
        recognised: the pages read by OCR, how sure they are and whether two readings agree.
        replacement_share: share of U+FFFD, `(cid:n)` and `GLYPH<…>` characters, 0..1.
        removed_lines: what the noise filter removed.
        warnings: sentences for a person.
    """

    pages: int = 0
    pages_with_text: int = 0
    pages_ocr: int = 0
    pages_needing_ocr: tuple[int, ...] = ()
    tables: int = 0
    replacement_share: float = 0.0
    removed_lines: tuple[RemovedLine, ...] = ()
    warnings: tuple[str, ...] = ()
    table_confidences: tuple[float, ...] = ()
    recognised: tuple[RecognisedPage, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The result of parsing one version.

    Attributes:
        title: best title, never empty (the file name's stem as the last resort).
        media_type: sniffed media type of the source.
        body: canonical Markdown: the blocks' texts joined by one blank line.
        blocks: in reading order; together they cover the body but for the blank lines.
        pages: one span per page that has text, in order; empty where the format has no pages.
        raw_text: deterministic raw extraction of the visible text with invisible characters
            (zero-width, bidi, tag) kept: the scan's input beside `hidden`.
        hidden: everything a reader does not see.
        coverage: what was read and what was not.
        parser: name and version of what parsed it, part of the stage's fingerprint.
        metadata: flat string facts from the source (author, date, publication, subject).
    """

    title: str
    media_type: str
    body: str
    blocks: tuple[Block, ...]
    pages: tuple[PageSpan, ...] = ()
    raw_text: str = ""
    hidden: tuple[HiddenText, ...] = ()
    coverage: Coverage = Coverage()
    parser: str = ""
    metadata: dict[str, str] = field(default_factory=dict)

    def page_text(self, page: int | None) -> str:
        """Text of one page, exactly a slice of the body (the whole body for None)."""
        if page is None or not self.pages:
            return self.body
        for span in self.pages:
            if span.page == page:
                return self.body[span.char_start : span.char_end]
        return ""
