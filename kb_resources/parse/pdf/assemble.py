"""All pages together: furniture, usual style, levels, paragraphs over pages, coverage.

Belongs here: what needs the whole document. Not here: rules for one page (`layout`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kb_resources.model import Coverage, DocumentState, Refusal, RemovedLine
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.pdf.furniture import PageLines, find_furniture
from kb_resources.parse.pdf.headings import HeadingStyle, heading_levels
from kb_resources.parse.pdf.labels import Context, title_keys
from kb_resources.parse.pdf.layout import PageDraft, Piece, page_pieces
from kb_resources.parse.pdf.marks import SENTENCE_END
from kb_resources.parse.pdf.mend import squeeze
from kb_resources.parse.pdf.pdfium import OutlineEntry
from kb_resources.parse.pdf.profile import Census
from kb_resources.parse.pdf.recognised import confidence_in
from kb_resources.parse.pdf.scans import FEW_CHARACTERS, SCAN_COVER, covered

_GARBAGE_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Assembled:
    """Drafts of a document and what was and was not read."""

    drafts: tuple[DraftBlock, ...]
    coverage: Coverage


def assemble(
    pages: Sequence[PageDraft],
    outline: Sequence[OutlineEntry],
    failures: Sequence[str],
    total: int,
    problems: Sequence[str] | None = None,
) -> Assembled | Refusal:
    """Turn first-pass pages into drafts, or say why there is no text.

    Args:
        pages: in page order.
        outline: bookmarks.
        failures: sentences about pages that could not be decoded.
        total: number of pages in the file.
        problems: what text recognition has to say, None where there was none.
    """
    census = Census()
    for page in pages:
        for flow in page.flows:
            census.add(flow.lines)
    usual = census.result()
    titles: defaultdict[int, set[str]] = defaultdict(set)
    for entry in outline:
        titles[entry.page or 0] |= title_keys(entry.title)
    contexts = {
        page.number: Context(usual, frozenset(titles[page.number] | titles[0]), page.height)
        for page in pages
    }
    furniture = find_furniture(
        [PageLines(p.number, p.flows[0].height, p.flows[0].lines) for p in pages if p.flows],
        usual,
    )
    pieces = _pieces(pages, furniture, contexts)
    if not pieces and furniture:  # the same few words on every page are the text
        furniture = {}
        pieces = _pieces(pages, furniture, contexts)
    needing_ocr = tuple(page.number for page in pages if _needs_ocr(page))
    if not pieces:
        return _nothing(pages, needing_ocr, failures, problems)
    characters = sum(page.characters for page in pages)
    garbage = sum(page.garbage for page in pages)
    recognised = tuple(page.recognised for page in pages if page.recognised is not None)
    coverage = Coverage(
        pages=total,
        pages_with_text=len({piece.page for piece in pieces}),
        pages_ocr=len(recognised),
        recognised=recognised,
        pages_needing_ocr=needing_ocr,
        tables=sum(piece.kind == "table" for piece in pieces),
        replacement_share=garbage / characters if characters else 0.0,
        removed_lines=tuple(
            line for number in sorted(furniture) for line in furniture[number].values()
        ),
        warnings=tuple(_warnings(needing_ocr, [*failures, *(problems or ())])),
    )
    return Assembled(tuple(_drafts(pieces, outline)), coverage)


def _pieces(
    pages: Sequence[PageDraft],
    furniture: dict[int, dict[int, RemovedLine]],
    contexts: dict[int, Context],
) -> list[Piece]:
    found: list[Piece] = []
    for page in pages:
        removed = frozenset(furniture.get(page.number, ()))
        pieces = page_pieces(page, removed, contexts[page.number])
        if page.recognised is not None:
            for piece in pieces:
                piece.confidence *= confidence_in(piece.shown, page.places)
        found.extend(pieces)
    return found


def _needs_ocr(page: PageDraft) -> bool:
    """Broken fonts, or a large picture and next to no text."""
    if page.garbage > _GARBAGE_SHARE * max(page.characters, 1):
        return True
    if page.characters - page.garbage > FEW_CHARACTERS:
        return False
    return covered(page.pictures, page.width, page.height) > SCAN_COVER


def _nothing(
    pages: Sequence[PageDraft],
    needing_ocr: Sequence[int],
    failures: Sequence[str],
    problems: Sequence[str] | None,
) -> Refusal:
    if needing_ocr or any(page.pictures for page in pages):
        return Refusal(
            DocumentState.NEEDS_OCR,
            _unread(problems),
            {"pages_needing_ocr": list(needing_ocr), "problems": list(problems or ())},
        )
    if failures:
        return Refusal(
            DocumentState.CORRUPT,
            "No page of this PDF could be decoded. Export it again from its source.",
            {"detail": failures[0]},
        )
    return Refusal(DocumentState.EMPTY, "The pages of this PDF are blank.")


def _unread(problems: Sequence[str] | None) -> str:
    if problems is None:
        return (
            "It holds pictures of pages and no readable text. Install text recognition "
            "(Tesseract with the packs of its languages) or add a searchable copy."
        )
    if problems:
        return f"It holds pictures of pages and none could be read: {problems[0]}"
    return (
        "It holds pictures of pages in which text recognition found no text it is sure of. Scan "
        "it again more clearly, or install the pack of its language."
    )


def _warnings(needing_ocr: Sequence[int], failures: Sequence[str]) -> list[str]:
    warnings = [squeeze(failure) for failure in failures[:20]]
    if needing_ocr:
        listed = ", ".join(map(str, needing_ocr[:20])) + (" …" if len(needing_ocr) > 20 else "")
        warnings.append(f"Pages without usable text, which need text recognition: {listed}.")
    return warnings


def _drafts(pieces: Sequence[Piece], outline: Sequence[OutlineEntry]) -> list[DraftBlock]:
    styles = [HeadingStyle(p.text, p.size, p.bold) for p in pieces if p.kind == "heading"]
    levels = iter(heading_levels(styles, outline))
    drafts: list[DraftBlock] = []
    last_text: Piece | None = None
    for piece in pieces:
        continues = _goes_on(last_text, piece)
        if piece.kind not in ("footnote", "caption", "table", "figure_text"):
            last_text = piece
        level = next(levels) if piece.kind == "heading" else None
        drafts.append(
            DraftBlock(
                kind=piece.kind,
                text=piece.text,
                page=piece.page,
                bbox=piece.shown.as_bbox(),
                level=1 if piece.kind == "list_item" else level,
                marker=piece.marker,
                rows=piece.rows,
                header_rows=piece.header_rows,
                continues=continues,
                confidence=piece.confidence,
            )
        )
    return drafts


def _goes_on(last: Piece | None, piece: Piece) -> bool:
    """Whether a paragraph at the top of a page goes on the last one of the page before."""
    if last is None or piece.kind != "paragraph" or last.page == piece.page:
        return False
    if last.kind not in ("paragraph", "list_item") or SENTENCE_END.search(last.text):
        return False
    start = piece.text.lstrip("\"'„“«(")[:1]
    return start.islower() or (start.isalnum() and last.text.endswith(("-", ",")))
