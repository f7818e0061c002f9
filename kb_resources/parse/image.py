"""Pictures of text (PNG, JPEG, TIFF and their kin) to a Reading.

Belongs here: decoding under limits, and what a picture carries beside its pixels. Reading is
`ocr`'s, layout `pdf`'s. Sizes are checked before a pixel is decoded, formats are a closed list:
https://pillow.readthedocs.io/en/stable/handbook/security.html.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.ocr import Picture, open_recogniser
from kb_resources.parse.ocr.picture import DPI, MAX_PIXELS
from kb_resources.parse.options import OcrOptions
from kb_resources.parse.reading import Reading

LARGEST_PIXELS = 100_000_000
"""Pixels of one picture or page, as its header states them; more is refused unread."""

MOST_PAGES = 500
_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
_POINTS = 72.0
_LEAST_DPI, _MOST_DPI = 50.0, 1200.0
_USUAL_INCHES = 11.0  # a page without a stated resolution is taken for A4
_SMALL_DPI = 200.0
_TEXT_LIMIT = 20_000
_EXIF_TEXTS = {270: "description", 315: "artist", 33432: "copyright", 37510: "comment"}
_FACTS = {"artist": "author", "description": "description"}


def read_image(data: bytes, options: OcrOptions) -> Reading | Refusal:
    """Read a picture, page by page where it has several.

    Returns:
        Reading with page and box on each block, or a Refusal: `needs_ocr` where no recogniser is
        installed or the picture holds no text it can read, `too_large`, `corrupt`.
    """
    from kb_resources.parse.pdf.assemble import assemble
    from kb_resources.parse.pdf.layout import PageDraft
    from kb_resources.parse.pdf.scans import recognised_draft

    opened = _open(data)
    if isinstance(opened, Refusal):
        return opened
    with opened as image:
        hidden = list(_told(image))
        recogniser = open_recogniser(options)
        if recogniser is None:
            return Refusal(
                DocumentState.NEEDS_OCR,
                "The file is a picture. Install text recognition (Tesseract with the packs of its "
                "languages) to read it.",
            )
        pages: list[PageDraft] = []
        total = min(getattr(image, "n_frames", 1) if image.format == "TIFF" else 1, MOST_PAGES)
        for index in range(total):
            page = _page(image, index)
            if isinstance(page, Refusal):
                return page
            picture, width, height = page
            reading = recogniser.read(picture)
            if reading is not None:
                pages.append(recognised_draft(reading, index + 1, width, height, picture.dpi))
            else:
                pages.append(_unread(index + 1, width, height))
    assembled = assemble(pages, (), (), total, list(recogniser.problems))
    if isinstance(assembled, Refusal):
        return assembled
    facts = {
        _FACTS[name]: item.text
        for item in hidden
        if (name := item.place.rpartition(" ")[2]) in _FACTS
    }
    return Reading(
        drafts=assembled.drafts,
        parser="image",
        hidden=tuple(hidden),
        coverage=assembled.coverage,
        metadata=facts,
    )


def _open(data: bytes) -> Any | Refusal:
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = LARGEST_PIXELS  # beyond twice that Pillow refuses by itself
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except Image.DecompressionBombError:
        return _too_large()
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        return _corrupt(error)
    if image.width * image.height > LARGEST_PIXELS:
        image.close()
        return _too_large()
    return image


def _page(image: Any, index: int) -> tuple[Picture, float, float] | Refusal:
    """One page in grey and its size in points."""
    import numpy as np
    from PIL import Image, ImageOps

    try:
        if index:
            image.seek(index)
        if image.width * image.height > LARGEST_PIXELS:
            return _too_large()
        stated = _dpi(image)
        grey = ImageOps.exif_transpose(_flat(image)).convert("L")
        factor = _factor(grey.width * grey.height, stated)
        if factor != 1.0:
            size = (max(round(grey.width * factor), 1), max(round(grey.height * factor), 1))
            grey = grey.resize(size, Image.Resampling.LANCZOS)
    except Image.DecompressionBombError:
        return _too_large()
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        return _corrupt(error)
    dpi = stated * factor
    picture = Picture(np.asarray(grey), dpi)
    return picture, grey.width * _POINTS / dpi, grey.height * _POINTS / dpi


def _flat(image: Any) -> Any:
    """The picture on white paper where it is transparent; deep greys brought to eight bits."""
    from PIL import Image

    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        see_through = image.convert("RGBA")
        paper = Image.new("RGBA", see_through.size, "white")
        flat = Image.alpha_composite(paper, see_through)
        flat.info = {}
        return flat
    if image.mode.startswith(("I", "F")):
        low, high = image.getextrema()
        scale = 255.0 / max(high - low, 1)
        return image.point(lambda value: (value - low) * scale).convert("L")
    return image


def _dpi(image: Any) -> float:
    """Stated pixels per inch, or what makes the picture a page of the usual height."""
    stated = image.info.get("dpi")
    try:
        value = float(stated[1])
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        value = 0.0
    if _LEAST_DPI <= value <= _MOST_DPI and value != _POINTS:
        return value
    guess = max(int(image.width), int(image.height)) / _USUAL_INCHES
    return min(max(guess, _POINTS), _MOST_DPI)


def _factor(pixels: int, dpi: float) -> float:
    """How much to enlarge a coarse picture for the recogniser, or to reduce a huge one."""
    most = math.sqrt(MAX_PIXELS / max(pixels, 1))
    wanted = DPI / dpi if dpi < _SMALL_DPI else 1.0
    return min(wanted, most)


def _unread(number: int, width: float, height: float) -> Any:
    from kb_resources.parse.pdf.ink import Box
    from kb_resources.parse.pdf.layout import PageDraft

    whole = (Box(0.0, 0.0, width, height),)
    return PageDraft(number, width, height, (), whole, (), garbage=0, characters=0)


def _told(image: Any) -> Iterator[HiddenText]:
    """Texts in the file's chunks and tags, for the scan."""
    for key, value in image.info.items():
        if isinstance(value, bytes) and key in {"xmp", "XML:com.adobe.xmp", "comment"}:
            value = value.decode("utf-8", "replace")
        if isinstance(value, str) and value.strip():
            yield HiddenText("metadata", f"image {key}", value[:_TEXT_LIMIT])
    try:
        tags = dict(image.getexif())
    except (OSError, ValueError, SyntaxError):
        return
    for tag, name in _EXIF_TEXTS.items():
        value = tags.get(tag)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace").strip("\x00")
        if isinstance(value, str) and value.strip():
            yield HiddenText("metadata", f"image {name}", value[:_TEXT_LIMIT])


def _too_large() -> Refusal:
    return Refusal(
        DocumentState.TOO_LARGE,
        f"The picture has more than {LARGEST_PIXELS // 1_000_000} million pixels; save it smaller.",
    )


def _corrupt(error: BaseException) -> Refusal:
    return Refusal(
        DocumentState.CORRUPT,
        f"The picture is damaged ({type(error).__name__}); save it again.",
    )
