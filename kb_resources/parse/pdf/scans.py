"""Pages that hold a picture of text: which they are, drawn, read, turned into ink.

Belongs here: the bridge from an open PDFium page to the recogniser and back. Reading pictures is
`parse.ocr`'s; what a document without a recogniser ends as is `assemble`'s.
"""

from __future__ import annotations

from dataclasses import replace

from kb_resources.model import RecognisedPage
from kb_resources.parse.ocr import PageReading, Picture, Recogniser
from kb_resources.parse.ocr.picture import DPI, MAX_PIXELS
from kb_resources.parse.pdf.ink import Box, PageInk
from kb_resources.parse.pdf.layout import PageDraft, first_pass
from kb_resources.parse.pdf.pdfium import PdfiumDocument
from kb_resources.parse.pdf.recognised import recognised_ink

FEW_CHARACTERS = 24
"""Up to this many characters beside a picture are a stamp or a page number, not the text."""

SCAN_COVER = 0.5
"""Share of a page that pictures must cover for it to be a scan."""

_BROKEN_SHARE = 0.25
_POINTS = 72.0


def is_scan(ink: PageInk) -> bool:
    """Whether only a picture of the page can say what it says: a scan, or fonts without names."""
    usable = ink.characters - ink.garbage
    if ink.garbage > max(_BROKEN_SHARE * ink.characters, FEW_CHARACTERS):
        return True
    return usable <= FEW_CHARACTERS and covered(ink.pictures, ink.width, ink.height) > SCAN_COVER


def covered(pictures: tuple[Box, ...], width: float, height: float) -> float:
    """Share of the page under pictures; strips of one scan count together."""
    sheet = Box(0.0, 0.0, width, height)
    inside = (max(p.overlap_x(sheet), 0.0) * max(p.overlap_y(sheet), 0.0) for p in pictures)
    return sum(inside) / max(width * height, 1.0)


def read_scan(ink: PageInk, document: PdfiumDocument, recogniser: Recogniser) -> PageDraft | None:
    """The page as recognised, or None where that gave no more than the page's own text."""
    picture = _drawn(document, ink)
    reading = recogniser.read(picture) if picture is not None else None
    if reading is None or picture is None:
        return None
    draft = recognised_draft(reading, ink.number, ink.width, ink.height, picture.dpi)
    return draft if draft.characters > ink.characters - ink.garbage else None


def recognised_draft(
    reading: PageReading, number: int, width: float, height: float, dpi: float
) -> PageDraft:
    """First pass over a recognised page.

    Args:
        reading: the words.
        number: 1-based page.
        width: of the page as shown, points.
        height: of the page as shown, points.
        dpi: of the picture that was read.
    """
    found = recognised_ink(reading, number, width, height, dpi)
    about = RecognisedPage(
        number, reading.language, reading.confidence, reading.agreement, reading.second
    )
    return replace(first_pass(found.ink), recognised=about, places=found.places)


def _drawn(document: PdfiumDocument, ink: PageInk) -> Picture | None:
    inches = ink.width * ink.height / _POINTS**2
    dpi = min(DPI, (MAX_PIXELS / max(inches, 0.01)) ** 0.5)
    with document.page(ink.number) as page:  # a fresh handle: no object is switched off on it
        if page is None:
            return None
        pixels = page.raw.render(scale=dpi / _POINTS, grayscale=True, draw_annots=False).to_numpy()
    return Picture(pixels if pixels.ndim == 2 else pixels[:, :, 0], dpi)
