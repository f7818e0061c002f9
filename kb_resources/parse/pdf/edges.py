"""Words at the edge of a page: docling-parse leaves out letters that lie partly outside of it.

Belongs here: asking PDFium for those letters. Only glyphs that touch the page come back: what lies
beyond it is not seen, and `hidden` reports it.
"""

from __future__ import annotations

from kb_resources.parse.pdf.ink import Box
from kb_resources.parse.pdf.mend import plain
from kb_resources.parse.pdf.pdfium import PdfiumPage

_MOST_LETTERS = 3


def whole_word(text: str, shown: Box, em: float, width: float, page: PdfiumPage) -> str:
    """A level word with the letters that the left or right edge cuts.

    Args:
        text: as decoded.
        shown: its place, page frame, points.
        em: height of its letters; a word further than this from both edges is whole.
        width: of the page, points.
        page: the page in PDFium.
    """
    if width - shown.right < em:
        reach = Box(shown.left, shown.top, width, shown.bottom)
        found = (t for t in _tokens(page, reach) if t.startswith(text))
    elif shown.left < em:
        reach = Box(0.0, shown.top, shown.right, shown.bottom)
        found = (t for t in _tokens(page, reach) if t.endswith(text))
    else:
        return text
    return next((token for token in found if len(token) <= len(text) + _MOST_LETTERS), text)


def _tokens(page: PdfiumPage, box: Box) -> list[str]:
    return plain(page.text_in(box)).split()
