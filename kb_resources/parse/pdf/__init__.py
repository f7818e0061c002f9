"""PDF reading without any model: docling's native pipeline, our own block assembly.

Belongs here: the one public call, `parse_pdf`. The way of a page: `pipeline` decodes it,
`decode` names its words, `lines`, `tables`, `columns`, `blocks` and `labels` find blocks, `order`
sorts them, `assemble` looks at the whole document, `hidden` reads what a reader does not see.
docling: https://docling-project.github.io/docling/
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb_resources.model import Refusal
from kb_resources.parse.pdf.result import PdfResult

if TYPE_CHECKING:
    from kb_resources.parse.ocr import Recogniser

__all__ = ["PdfResult", "parse_pdf"]


def parse_pdf(data: bytes, name: str, recogniser: Recogniser | None = None) -> PdfResult | Refusal:
    """Read a PDF into draft blocks, page by page.

    Args:
        data: the file's bytes.
        name: its name, for docling's messages only.
        recogniser: reads the pages that are pictures; without one they stay unread.

    Returns:
        The drafts with coverage and hidden text; a `Refusal` for what is encrypted, damaged,
        empty or made of pictures only.
    """
    from kb_resources.parse.pdf.read import read_pdf

    return read_pdf(data, name, recogniser)
