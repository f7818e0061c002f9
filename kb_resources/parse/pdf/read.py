"""From bytes to a `PdfResult`: opens the file twice, decodes once, assembles.

Belongs here: the sequence of the two readers and the refusals between them. PDFium opens first:
it knows passwords and damage, and is quick to say so.
"""

from __future__ import annotations

from kb_resources.model import HiddenText, Refusal
from kb_resources.parse.ocr import Recogniser
from kb_resources.parse.pdf.assemble import assemble
from kb_resources.parse.pdf.decode import FontBook, NativePage, read_page
from kb_resources.parse.pdf.extras import document_extras, page_extras
from kb_resources.parse.pdf.fallback import native_page
from kb_resources.parse.pdf.headings import best_title
from kb_resources.parse.pdf.hidden import as_hidden_text, hidden_runs
from kb_resources.parse.pdf.layout import PageDraft, first_pass
from kb_resources.parse.pdf.pdfium import PdfiumDocument, PdfiumPage, open_document
from kb_resources.parse.pdf.result import PdfResult
from kb_resources.parse.pdf.scans import is_scan, read_scan
from kb_resources.parse.pdf.seen import DrawingBudget
from kb_resources.parse.pdf.unseen import FACTS


def read_pdf(data: bytes, name: str, recogniser: Recogniser | None) -> PdfResult | Refusal:
    """See `kb_resources.parse.pdf.parse_pdf`."""
    document = open_document(data)
    if isinstance(document, Refusal):
        return document
    try:
        return _read(data, name, document, recogniser)
    finally:
        document.close()


def _read(
    data: bytes, name: str, document: PdfiumDocument, recogniser: Recogniser | None
) -> PdfResult | Refusal:
    from kb_resources.parse.pdf.pipeline import decode_pages

    fonts = FontBook()
    budget = DrawingBudget()
    pages: list[PageDraft] = []
    hidden: list[tuple[int, list[HiddenText]]] = []

    def read(native: NativePage) -> None:
        with document.page(native.number) as page:
            take(native, page)

    def take(native: NativePage, page: PdfiumPage | None) -> None:
        runs = hidden_runs(page, budget) if page is not None else []
        unseen = as_hidden_text(runs, native.number)
        if page is not None:
            unseen.extend(page_extras(page))
        if unseen:
            hidden.append((native.number, unseen))
        ink = read_page(native, fonts, page, runs)
        scan = read_scan(ink, document, recogniser) if recogniser and is_scan(ink) else None
        pages.append(scan or first_pass(ink))

    failures = decode_pages(data, name, read)
    for number in sorted(set(range(1, document.page_count + 1)) - {p.number for p in pages}):
        with document.page(number) as page:
            if page is not None:
                take(native_page(page), page)
    pages.sort(key=lambda page: page.number)
    problems = None if recogniser is None else list(recogniser.problems)
    assembled = assemble(pages, document.outline(), failures, document.page_count, problems)
    if isinstance(assembled, Refusal):
        return assembled
    info = document.metadata()
    hidden.sort(key=lambda entry: entry[0])
    unseen = [*document_extras(document, data), *(text for _, texts in hidden for text in texts)]
    return PdfResult(
        title=best_title(info.get("Title", ""), assembled.drafts),
        drafts=assembled.drafts,
        hidden=tuple(unseen),
        coverage=assembled.coverage,
        metadata={fact: info[key] for key, fact in FACTS.items() if info.get(key)},
    )
