"""What a caller may choose about parsing; a value that travels to the children.

Belongs here: the choices and nothing that acts on them. Settings become options in `compose`.
Language names are those of Tesseract's packs,
https://tesseract-ocr.github.io/tessdoc/Data-Files-in-different-versions.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OCR_LANGUAGES = ("eng", "deu", "hrv", "slv", "srp_latn", "rus", "bul", "srp", "mkd")


@dataclass(frozen=True, slots=True)
class OcrOptions:
    """How pictures of text are read.

    Attributes:
        enabled: False leaves them unread (`needs_ocr`).
        languages: Tesseract packs to choose from; those not installed are passed over.
        page_s: most seconds for one reading of one page.
        document_s: most seconds for all pages of a document; the rest stays unread.
    """

    enabled: bool = True
    languages: tuple[str, ...] = OCR_LANGUAGES
    page_s: float = 120.0
    document_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Everything that may be chosen.

    Attributes:
        ocr: reading of pictures.
        models: read PDFs with docling's full pipeline and its models instead of the native one.
        served: a docling-serve reads PDFs and pictures; part of the parser's version only.
    """

    ocr: OcrOptions = field(default_factory=OcrOptions)
    models: bool = False
    served: bool = False


def options_from_json(value: Mapping[str, Any]) -> ParseOptions:
    """Options from what `dataclasses.asdict` and JSON made of them."""
    ocr = dict(value["ocr"])
    return ParseOptions(
        **{**value, "ocr": OcrOptions(**{**ocr, "languages": tuple(ocr["languages"])})}
    )
