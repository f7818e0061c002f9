"""Figure text: labels inside drawings and pictures, kept apart from the prose.

Belongs here: telling a drawing from a framed paragraph or a banner. A region counts as a figure
when a figure caption stands next to it and its lines are short, or when it holds many very short
lines. Its headings and paragraphs then become `figure_text`.
Compare "picture text" in https://github.com/pymupdf/PyMuPDF/wiki (layout notes).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from kb_resources.parse.pdf.ink import Box

_MAX_SHARE = 0.85
_MAX_BARE_SHARE = 0.35
_MIN_WIDTH = 60.0
_MIN_HEIGHT = 40.0
_CAPTION_REACH = 42.0
_LABEL_CHARS = 60
_SHORT_CHARS = 20
_MANY_LABELS = 6
_FIGURE_CAPTION = re.compile(
    r"^(?:figure|fig\.|scheme|chart|diagram|graph|plate|abbildung|abb\.|рис(?:унок|\.)|схема"
    r"|фигура|фиг\.|график|диаграмма|слика|дијаграм|slika|grafikon|graf|dijagram|shema)\s*\S*\d",
    re.IGNORECASE,
)


def is_figure_caption(text: str) -> bool:
    """Whether a caption names a figure rather than a table or a listing."""
    return _FIGURE_CAPTION.match(text) is not None


def figure_regions(
    frames: Sequence[Box],
    labels: Sequence[tuple[Box, int]],
    captions: Sequence[Box],
    width: float,
    height: float,
) -> list[Box]:
    """Which drawn regions of a page are figures.

    Args:
        frames: rectangles around connected shapes and pictures, page frame.
        labels: place and longest line in characters of each block that may be a label.
        captions: places of figure captions.
        width: of the page in points.
        height: of the page in points.
    """
    found = []
    for frame in frames:
        area = frame.width * frame.height
        if frame.width < _MIN_WIDTH or frame.height < _MIN_HEIGHT:
            continue
        share = area / max(width * height, 1.0)
        if share > _MAX_SHARE:
            continue
        lengths = [length for box, length in labels if _inside(box, frame)]
        if not lengths:
            continue
        captioned = any(_next_to(caption, frame) for caption in captions)
        typical = median(lengths)
        if (captioned and typical <= _LABEL_CHARS) or (
            share <= _MAX_BARE_SHARE and len(lengths) >= _MANY_LABELS and typical <= _SHORT_CHARS
        ):
            found.append(frame)
    return found


def figure_of(box: Box, regions: Sequence[Box]) -> int | None:
    """Index of the region that a block lies in, None outside of all."""
    return next((i for i, region in enumerate(regions) if _inside(box, region)), None)


def _inside(box: Box, frame: Box) -> bool:
    return frame.holds((box.left + box.right) / 2, box.middle) and (
        box.height <= 1.1 * frame.height and box.width <= 1.1 * frame.width
    )


def _next_to(caption: Box, frame: Box) -> bool:
    apart = max(caption.top - frame.bottom, frame.top - caption.bottom)
    return caption.overlap_x(frame) > 0 and -frame.height < apart < _CAPTION_REACH
