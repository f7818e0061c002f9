"""Reading text from pictures: Tesseract, a second opinion, and what two readings agree on.

Belongs here: the names the PDF and image readers use. Which pages need it is the readers' decision.
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand
from kb_resources.parse.ocr.picture import Picture

if TYPE_CHECKING:
    from kb_resources.parse.ocr.recogniser import PageReading, Recogniser, open_recogniser
    from kb_resources.parse.ocr.second import find_rapid
    from kb_resources.parse.ocr.tesseract import OcrWord, Tesseract, find_tesseract
else:
    __getattr__ = on_demand(
        __name__,
        {
            "recogniser": (
                "PageReading",
                "Recogniser",
                "open_recogniser",
            ),
            "second": ("find_rapid",),
            "tesseract": (
                "OcrWord",
                "Tesseract",
                "find_tesseract",
            ),
        },
    )

__all__ = [
    "OcrWord",
    "PageReading",
    "Picture",
    "Recogniser",
    "Tesseract",
    "find_rapid",
    "find_tesseract",
    "open_recogniser",
]
