"""Proof by drawing: does a page look different without some of its objects?

Belongs here: the last word on suspected hidden text. Rules about colours nominate, two drawings of
the page, with and without the suspects, decide. That also covers text under shapes, clipped text
and switched-off layers. Drawing is dear, so it has a budget per document.
API: FPDFPageObj_SetIsActive in fpdf_edit.h of https://pdfium.googlesource.com/pdfium
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kb_resources.parse.pdf.ink import Box
from kb_resources.parse.pdf.pdfium import PdfiumPage

_MAX_PIXELS = 3_000_000
_SCALE = 1.5
_CHANGE = 20
_MIN_CHANGED = 2


@dataclass(slots=True)
class DrawingBudget:
    """How many pages of a document may still be drawn."""

    left: int = 150


def changes_nothing(
    page: PdfiumPage, objects: Sequence[Any], boxes: Sequence[Box], budget: DrawingBudget
) -> list[bool]:
    """For each object, whether the page looks the same without it.

    Objects stay switched off on the open page handle. Once the budget is spent, every suspicion
    counts as proved.

    Args:
        page: the open page.
        objects: PDFium page objects.
        boxes: their places, page frame.
        budget: lowered by one.
    """
    if not objects or budget.left <= 0:
        return [True] * len(objects)
    import numpy as np
    import pypdfium2.raw as pdfium

    budget.left -= 1
    width, height = page.raw.get_size()
    scale = min(_SCALE, (_MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    before = page.raw.render(scale=scale, draw_annots=False).to_numpy().astype(np.int16)
    for obj in objects:
        pdfium.FPDFPageObj_SetIsActive(obj, 0)
    after = page.raw.render(scale=scale, draw_annots=False).to_numpy()
    changed = np.abs(before - after).max(axis=2) >= _CHANGE
    verdicts = []
    for box in boxes:
        top, bottom = max(int(box.top * scale), 0), int(box.bottom * scale) + 2
        left, right = max(int(box.left * scale), 0), int(box.right * scale) + 2
        verdicts.append(int(changed[top:bottom, left:right].sum()) < _MIN_CHANGED)
    return verdicts
