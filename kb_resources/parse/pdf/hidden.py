"""Text that a page holds and does not show: white, transparent, tiny, invisible, off the page.

Belongs here: PDFium's page objects, one page at a time, from the raw bytes. Text of render mode 3
over a picture is the recognised layer of a searchable scan and counts as visible. Not here:
annotations, attachments, metadata and scripts (`extras`).
PDF text state: ISO 32000-1, 9.3.6. API: public/fpdf_edit.h of https://pdfium.googlesource.com/pdfium
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kb_resources.model import HiddenText
from kb_resources.parse.pdf.ink import Box
from kb_resources.parse.pdf.pdfium import PdfiumPage
from kb_resources.parse.pdf.seen import DrawingBudget, changes_nothing

_MAX_OBJECTS = 60_000
_MAX_AREAS = 400
_MAX_DEPTH = 6
_TINY_PT = 2.0
_FAINT = 16
_CLEAR = 8
_MIN_AREA = 5.0

Colour = tuple[int, int, int]
Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_WHITE: Colour = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class HiddenRun:
    """One hidden piece of text and where it would stand, page frame."""

    kind: str
    text: str
    box: Box


@dataclass(slots=True)
class _Text:
    """A text object under examination."""

    obj: Any
    box: Box
    order: int
    why: str | None
    proved: bool


@dataclass(slots=True)
class _Area:
    """Something painted: a filled path with its colour, or a picture (colour None)."""

    box: Box
    colour: Colour | None
    order: int


@dataclass(slots=True)
class _Canvas:
    """What lies on the page so far, in paint order."""

    areas: list[_Area] = field(default_factory=list)

    def paint(self, box: Box, colour: Colour | None, order: int) -> None:
        if len(self.areas) < _MAX_AREAS:
            self.areas.append(_Area(box, colour, order))

    def covers(self, box: Box, order: int) -> bool:
        """Whether a filled path painted later lies over the centre of a box."""
        x, y = (box.left + box.right) / 2, box.middle
        return any(
            area.order > order and area.colour is not None and area.box.holds(x, y)
            for area in reversed(self.areas)
        )

    def under(self, box: Box) -> _Area | None:
        """The topmost thing under the centre of a box."""
        x, y = (box.left + box.right) / 2, box.middle
        return next((area for area in reversed(self.areas) if area.box.holds(x, y)), None)

    def picture_under(self, box: Box) -> bool:
        """Whether a picture clearly larger than the box lies under it."""
        x, y = (box.left + box.right) / 2, box.middle
        size = box.width * box.height
        return any(
            area.colour is None
            and area.box.holds(x, y)
            and area.box.width * area.box.height > 4 * size
            for area in self.areas
        )


def hidden_runs(page: PdfiumPage, budget: DrawingBudget) -> list[HiddenRun]:
    """Hidden text objects of a page, in paint order.

    What colours and order make suspicious is confirmed by drawing, see `seen`.
    """
    import pypdfium2.raw as pdfium

    width, height = page.raw.get_size()
    sheet = Box(0.0, 0.0, width, height)
    canvas = _Canvas()
    texts: list[_Text] = []
    for order, (obj, kind, matrix) in enumerate(_objects(page.raw)):
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            box = _bounds(obj, matrix, page)
            if box is not None:
                why, proved = _judge(obj, matrix, box, sheet, canvas)
                texts.append(_Text(obj, box, order, why, proved))
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            _paint_path(obj, matrix, page, canvas, order)
        elif kind in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_SHADING):
            box = _bounds(obj, matrix, page)
            if box is not None:
                canvas.paint(box, None, order)
    for text in texts:
        if text.why is None and canvas.covers(text.box, text.order):
            text.why = "covered_text"
    _prove([text for text in texts if text.why and not text.proved], page, budget)
    runs = (HiddenRun(t.why, _text(t.obj, page), t.box) for t in texts if t.why is not None)
    return [run for run in runs if run.text.strip()]


def _prove(suspects: list[_Text], page: PdfiumPage, budget: DrawingBudget) -> None:
    """Clear the suspects without which the page looks different."""
    if not suspects:
        return
    verdicts = changes_nothing(
        page, [text.obj for text in suspects], [text.box for text in suspects], budget
    )
    for text, unseen in zip(suspects, verdicts, strict=True):
        if not unseen:
            text.why = None


def as_hidden_text(runs: list[HiddenRun], page: int) -> list[HiddenText]:
    """Runs of one kind that follow each other as one text each."""
    merged: list[tuple[str, list[str]]] = []
    for run in runs:
        if merged and merged[-1][0] == run.kind:
            merged[-1][1].append(run.text)
        else:
            merged.append((run.kind, [run.text]))
    return [HiddenText(kind, f"page {page}", "\n".join(texts)) for kind, texts in merged]


def _objects(raw_page: Any) -> Iterator[tuple[Any, int, Matrix]]:
    """Page objects with those of form XObjects in place, and the matrix of their form."""
    import pypdfium2.raw as pdfium

    budget = [_MAX_OBJECTS]

    def walk(get: Any, owner: Any, count: int, matrix: Matrix, depth: int) -> Any:
        for index in range(count):
            if budget[0] <= 0:
                return
            budget[0] -= 1
            obj = get(owner, index)
            kind = pdfium.FPDFPageObj_GetType(obj)
            if kind != pdfium.FPDF_PAGEOBJ_FORM:
                yield obj, kind, matrix
            elif depth < _MAX_DEPTH:
                inner = _times(_matrix(obj), matrix)
                inside = pdfium.FPDFFormObj_CountObjects(obj)
                yield from walk(pdfium.FPDFFormObj_GetObject, obj, inside, inner, depth + 1)

    count = pdfium.FPDFPage_CountObjects(raw_page)
    yield from walk(pdfium.FPDFPage_GetObject, raw_page, count, _IDENTITY, 0)


def _judge(
    obj: Any, matrix: Matrix, box: Box, sheet: Box, canvas: _Canvas
) -> tuple[str | None, bool]:
    """Why a text object may be hidden, and whether that is certain without drawing."""
    import pypdfium2.raw as pdfium

    if not sheet.holds((box.left + box.right) / 2, box.middle, 1.0):
        return "off_page", True
    mode = pdfium.FPDFTextObj_GetTextRenderMode(obj)
    if mode in (pdfium.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium.FPDF_TEXTRENDERMODE_CLIP):
        return (None, True) if canvas.picture_under(box) else ("invisible_text", True)
    if min(box.width, box.height) < _TINY_PT and 0 < _font_size(obj, matrix) < _TINY_PT:
        return "tiny_text", True
    return _faint(obj, mode, box, canvas), False


def _faint(obj: Any, mode: int, box: Box, canvas: _Canvas) -> str | None:
    """Why painted text cannot be seen: no ink, or the colour of what lies under it."""
    import pypdfium2.raw as pdfium

    inks = []
    if mode != pdfium.FPDF_TEXTRENDERMODE_STROKE:
        inks.append(_colour(pdfium.FPDFPageObj_GetFillColor, obj))
    if mode in (pdfium.FPDF_TEXTRENDERMODE_STROKE, pdfium.FPDF_TEXTRENDERMODE_FILL_STROKE):
        inks.append(_colour(pdfium.FPDFPageObj_GetStrokeColor, obj))
    if any(ink is None for ink in inks):
        return None  # a pattern
    known = [ink for ink in inks if ink is not None]
    if all(alpha <= _CLEAR for _, alpha in known):
        return "transparent_text"
    under = canvas.under(box)
    ground = _WHITE if under is None else under.colour
    if ground is None:
        return None
    if all(_distance(colour, ground) < _FAINT for colour, _ in known):
        return "white_text" if _distance(ground, _WHITE) < _FAINT else "same_colour_text"
    return None


def _paint_path(obj: Any, matrix: Matrix, page: PdfiumPage, canvas: _Canvas, order: int) -> None:
    import pypdfium2.raw as pdfium

    fill, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium.FPDFPath_GetDrawMode(obj, fill, stroke) or not fill.value:
        return
    box = _bounds(obj, matrix, page)
    if box is None or box.width < _MIN_AREA or box.height < _MIN_AREA:
        return
    ink = _colour(pdfium.FPDFPageObj_GetFillColor, obj)
    if ink is None:
        canvas.paint(box, None, order)
        return
    colour, alpha = ink
    if alpha <= _CLEAR:
        return
    under = canvas.under(box)
    ground = _WHITE if under is None else under.colour
    canvas.paint(box, None if ground is None else _over(colour, alpha, ground), order)


def _bounds(obj: Any, matrix: Matrix, page: PdfiumPage) -> Box | None:
    import pypdfium2.raw as pdfium

    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not pdfium.FPDFPageObj_GetBounds(obj, left, bottom, right, top):
        return None
    if matrix is _IDENTITY:
        return page.frame.to_page(left.value, bottom.value, right.value, top.value)
    a, b, c, d, e, f = matrix
    corners = [
        (a * x + c * y + e, b * x + d * y + f)
        for x in (left.value, right.value)
        for y in (bottom.value, top.value)
    ]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return page.frame.to_page(min(xs), min(ys), max(xs), max(ys))


def _matrix(obj: Any) -> Matrix:
    import pypdfium2.raw as pdfium

    m = pdfium.FS_MATRIX()
    if not pdfium.FPDFPageObj_GetMatrix(obj, m):
        return _IDENTITY
    return m.a, m.b, m.c, m.d, m.e, m.f


def _times(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = then
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )


def _font_size(obj: Any, matrix: Matrix) -> float:
    import pypdfium2.raw as pdfium

    size = ctypes.c_float()
    pdfium.FPDFTextObj_GetFontSize(obj, size)
    _, _, c, d, _, _ = _times(_matrix(obj), matrix)
    return abs(size.value) * math.hypot(c, d)


def _text(obj: Any, page: PdfiumPage) -> str:
    import pypdfium2.raw as pdfium

    length = pdfium.FPDFTextObj_GetText(obj, page.text, None, 0)
    buffer = ctypes.create_string_buffer(max(length, 2))
    pointer = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
    pdfium.FPDFTextObj_GetText(obj, page.text, pointer, length)
    return buffer.raw[:length].decode("utf-16-le", "replace").rstrip("\0")


def _colour(getter: Any, obj: Any) -> tuple[Colour, int] | None:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not getter(obj, red, green, blue, alpha):
        return None
    return (red.value, green.value, blue.value), alpha.value


def _distance(one: Colour, other: Colour) -> int:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _over(colour: Colour, alpha: int, ground: Colour) -> Colour:
    red, green, blue = (
        round((top * alpha + low * (255 - alpha)) / 255)
        for top, low in zip(colour, ground, strict=True)
    )
    return red, green, blue
