"""Words of a page by PDFium alone, for pages that docling-parse cannot decode.

Belongs here: the second reader in the first one's place. It knows neither rules nor drawings, so
tables without gaps are lost on such pages, the text is not.
API: fpdf_text.h of https://pdfium.googlesource.com/pdfium
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

from kb_resources.parse.pdf.decode import NativePage
from kb_resources.parse.pdf.ink import Box, enclose
from kb_resources.parse.pdf.pdfium import PdfiumPage

_MAX_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class PlainCell:
    """A word with the corner names of docling-parse's cells, origin bottom left."""

    text: str
    font_name: str
    r_x0: float
    r_y0: float
    r_x1: float
    r_y1: float
    r_x2: float
    r_y2: float
    r_x3: float
    r_y3: float


def native_page(page: PdfiumPage) -> NativePage:
    """A page as `decode` takes it, from PDFium's characters."""
    width, height = page.raw.get_size()
    return NativePage(
        number=page.number,
        width=width,
        height=height,
        cells=tuple(_words(page, height)),
        rules=(),
        pictures=(),
    )


def _words(page: PdfiumPage, height: float) -> Iterator[PlainCell]:
    text, font = "", ""
    boxes: list[Box] = []
    count = min(page.text.count_chars(), _MAX_CHARACTERS)
    for index, character in enumerate(page.text.get_text_range(0, count)[:count]):
        if character.isspace():
            if text:
                yield _cell(text, enclose(boxes), font, height)
            text, boxes = "", []
            continue
        box = _box(page, index)
        if box is None:
            continue
        if text and not _follows(boxes[-1], box):
            yield _cell(text, enclose(boxes), font, height)
            text, boxes = "", []
        if not text:
            font = page.font_name(index)
        text += character
        boxes.append(box)
    if text:
        yield _cell(text, enclose(boxes), font, height)


def _follows(last: Box, box: Box) -> bool:
    """Whether a glyph stands on the line of the one before."""
    return box.overlap_y(last) > 0.0 or abs(box.middle - last.middle) < max(box.height, last.height)


def _box(page: PdfiumPage, index: int) -> Box | None:
    import pypdfium2.raw as pdfium

    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if not pdfium.FPDFText_GetCharBox(page.text, index, left, right, bottom, top):
        return None
    return page.frame.to_page(left.value, bottom.value, right.value, top.value)


def _cell(text: str, box: Box, font: str, height: float) -> PlainCell:
    low, high = height - box.bottom, height - box.top
    return PlainCell(text, font, box.left, low, box.right, low, box.right, high, box.left, high)
