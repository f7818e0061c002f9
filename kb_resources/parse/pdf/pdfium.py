"""PDFium's view of a document: does it open, what do its pages say, how large is a glyph.

Belongs here: every call into pypdfium2 that reads visible text or the document's frame. Hidden
text is read in `hidden`, layout by docling-parse in `decode`. PDFium answers three questions that
docling-parse does not: where words end, the true font size, and text of fonts it cannot map.
API: https://pdfium.googlesource.com/pdfium/+/refs/heads/main/public/fpdf_text.h
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kb_resources.model import DocumentState, Refusal
from kb_resources.parse.pdf.ink import Box

_MAX_OUTLINE = 5_000
_NO_PAGES = re.compile(rb"/Count\s+0\b")
_A_PAGE = re.compile(rb"/Type\s*/Page\b")
_FIXED_PITCH, _ITALIC_FLAG, _FORCE_BOLD = 0x1, 0x40, 0x40000
_BOLD = re.compile(r"bold|black|heavy|semib|demi|-?BX\d|CMB|medi$|-medi", re.IGNORECASE)
_ITALIC = re.compile(r"ital|obliq|slant|CMTI|SFTI|-It$", re.IGNORECASE)
_MONO = re.compile(r"mono|courier|typewriter|cmtt|sftt|consol|menlo|inconsol|fixed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GlyphStyle:
    """Font size in points as shown, and what PDFium knows of the font."""

    size: float
    weight: int
    italic: bool
    mono: bool


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """One bookmark: its title, depth from 1 and 1-based page (None without a target)."""

    title: str
    depth: int
    page: int | None


@dataclass(frozen=True, slots=True)
class _Frame:
    """Affine map from PDF user space (crop box, rotation, y upwards) to the page frame."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    @classmethod
    def of(cls, raw_page: Any) -> _Frame:
        import pypdfium2.raw as pdfium

        width, height = raw_page.get_size()
        fine = 1000.0  # PDFium answers in whole pixels: ask for a large canvas
        size = (0, 0, max(int(width * fine), 1), max(int(height * fine), 1), 0)

        def place(x: float, y: float) -> tuple[float, float]:
            px, py = ctypes.c_int(), ctypes.c_int()
            pdfium.FPDF_PageToDevice(raw_page, *size, x, y, px, py)
            return px.value / fine, py.value / fine

        e, f = place(0.0, 0.0)
        x_x, x_y = place(100.0, 0.0)
        y_x, y_y = place(0.0, 100.0)
        return cls((x_x - e) / 100, (x_y - f) / 100, (y_x - e) / 100, (y_y - f) / 100, e, f)

    def to_page(self, left: float, bottom: float, right: float, top: float) -> Box:
        """A rectangle of user space in the page frame."""
        if self.b == 0.0 == self.c and self.a > 0 > self.d:
            return Box(
                self.a * left + self.e,
                self.d * top + self.f,
                self.a * right + self.e,
                self.d * bottom + self.f,
            )
        xs = [self.a * x + self.c * y + self.e for x in (left, right) for y in (bottom, top)]
        ys = [self.b * x + self.d * y + self.f for x in (left, right) for y in (bottom, top)]
        return Box(min(xs), min(ys), max(xs), max(ys))

    def to_user(self, box: Box) -> tuple[float, float, float, float]:
        """A rectangle of the page frame in user space: left, bottom, right, top."""
        det = self.a * self.d - self.b * self.c or 1.0
        xs, ys = [], []
        for x, y in ((box.left, box.top), (box.right, box.bottom)):
            dx, dy = x - self.e, y - self.f
            xs.append((self.d * dx - self.c * dy) / det)
            ys.append((self.a * dy - self.b * dx) / det)
        return min(xs), min(ys), max(xs), max(ys)


@dataclass(slots=True)
class PdfiumPage:
    """One open page; `raw` and `text` are pypdfium2 objects."""

    number: int
    raw: Any
    text: Any
    _tokens: list[str] | None = field(default=None)
    _frame: _Frame | None = field(default=None)

    @property
    def frame(self) -> _Frame:
        """The map between the page frame and PDF user space."""
        if self._frame is None:
            self._frame = _Frame.of(self.raw)
        return self._frame

    def tokens(self) -> list[str]:
        """The page's text split at white space, in PDFium's order."""
        if self._tokens is None:
            self._tokens = self.text.get_text_range().split()
        return self._tokens

    def text_in(self, box: Box) -> str:
        """Text whose glyphs touch a rectangle of the page frame."""
        return str(self.text.get_text_bounded(*self.frame.to_user(box)))

    def style_at(self, x: float, y: float, reach: float) -> GlyphStyle | None:
        """Style of the glyph nearest to a point of the page frame, None when none is near."""
        import pypdfium2.raw as pdfium

        user_x, user_y, _, _ = self.frame.to_user(Box(x, y, x, y))
        index = pdfium.FPDFText_GetCharIndexAtPos(self.text, user_x, user_y, reach, reach)
        if index < 0:
            return None
        matrix = pdfium.FS_MATRIX()
        size = pdfium.FPDFText_GetFontSize(self.text, index)
        if pdfium.FPDFText_GetMatrix(self.text, index, matrix):
            size *= math.hypot(matrix.c, matrix.d)
        font, flags = self._font(index)
        weight = pdfium.FPDFText_GetFontWeight(self.text, index)
        return GlyphStyle(
            size=size,
            weight=700 if _BOLD.search(font) or flags & _FORCE_BOLD else max(weight, 0),
            italic=bool(flags & _ITALIC_FLAG) or bool(_ITALIC.search(font)),
            mono=bool(flags & _FIXED_PITCH) or bool(_MONO.search(font)),
        )

    def font_name(self, index: int) -> str:
        """Name of the font of one character."""
        return self._font(index)[0]

    def _font(self, index: int) -> tuple[str, int]:
        """Name and descriptor flags (ISO 32000-1, table 123) of a character's font."""
        import pypdfium2.raw as pdfium

        flags = ctypes.c_int()
        length = pdfium.FPDFText_GetFontInfo(self.text, index, None, 0, flags)
        name = ctypes.create_string_buffer(max(length, 1))
        pdfium.FPDFText_GetFontInfo(self.text, index, name, length, flags)
        return name.value.decode("utf-8", "replace"), flags.value


class PdfiumDocument:
    """A document opened by PDFium. Use `open_document`; close it when done."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.page_count = len(raw)

    @property
    def raw(self) -> Any:
        """The pypdfium2 document."""
        return self._raw

    @contextmanager
    def page(self, number: int) -> Iterator[PdfiumPage | None]:
        """Open one page (1-based) for the length of a block; None when PDFium cannot read it."""
        import pypdfium2

        try:
            raw = self._raw[number - 1]
            text = raw.get_textpage()
        except pypdfium2.PdfiumError:
            yield None
            return
        try:
            yield PdfiumPage(number, raw, text)
        finally:
            text.close()
            raw.close()

    def metadata(self) -> dict[str, str]:
        """The document information dictionary, empty values left out."""
        pairs = self._raw.get_metadata_dict(skip_empty=True)
        return {key: str(value).replace("\0", "").strip() for key, value in pairs.items()}

    def outline(self) -> list[OutlineEntry]:
        """Bookmarks in document order; cycles and monsters are cut off."""
        import pypdfium2

        entries: list[OutlineEntry] = []
        try:
            for mark in self._raw.get_toc(max_depth=8):
                title = " ".join((mark.get_title() or "").split())
                target = mark.get_dest()
                index = target.get_index() if target is not None else None
                if title:
                    entries.append(
                        OutlineEntry(title, mark.level + 1, None if index is None else index + 1)
                    )
                if len(entries) >= _MAX_OUTLINE:
                    break
        except pypdfium2.PdfiumError:
            return entries
        return entries

    def close(self) -> None:
        """Free PDFium's memory."""
        self._raw.close()


def open_document(data: bytes) -> PdfiumDocument | Refusal:
    """Open a PDF, or say in one sentence why it cannot be read."""
    import pypdfium2
    import pypdfium2.raw as pdfium

    if b"%PDF-" not in data[:1024]:
        return Refusal(
            DocumentState.CORRUPT,
            "This is not a PDF file: its first bytes lack the PDF mark. Check the file's type.",
        )
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if _NO_PAGES.search(data) and not _A_PAGE.search(data):
            return Refusal(DocumentState.EMPTY, "This PDF has no pages.")
        if getattr(error, "err_code", None) == pdfium.FPDF_ERR_PASSWORD:
            return Refusal(
                DocumentState.ENCRYPTED,
                "This PDF needs a password to open. Save a copy without a password and add that.",
            )
        return Refusal(
            DocumentState.CORRUPT,
            "This PDF is damaged and cannot be opened. Export it again from its source.",
            {"detail": str(error)},
        )
    if len(document) == 0:
        document.close()
        return Refusal(DocumentState.EMPTY, "This PDF has no pages.")
    return PdfiumDocument(document)
