"""Recognised words as the ink of a page, so that one layout serves prints and scans.

Belongs here: font sizes and base lines out of boxes of letters. A recogniser's box hugs the letters
("no" is half as high as "pg"), layout wants the box of the font. Proportions of letters are those
of text faces, see https://en.wikipedia.org/wiki/X-height.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from kb_resources.parse.ocr import OcrWord, PageReading
from kb_resources.parse.pdf.ink import Box, Face, Flow, PageInk, Word

_FACE = Face("recognised")
_X_HEIGHT, _CAP_HEIGHT = 0.50, 0.70
_DESCENT, _SHORT_DESCENT = 0.21, 0.08
_TALL = re.compile(r"[A-ZА-ЯЁЀ-Џ0-9bdfhijklt\"'()\[\]{}/|!?§%&бђћйјфёѓќčćšžäöüß]")
_DEEP = re.compile(r"[gjpqyQруфј(){}\[\]|]")
_SHORT = re.compile(r"[дцщџ,;]")
_LETTERS = re.compile(r"\w")
_SAME = 0.18
_STEP = 2  # sizes to half points
_FONT_TOP, _FONT_BOTTOM = 0.75, 0.22


@dataclass(frozen=True, slots=True)
class RecognisedInk:
    """A recognised page and how sure each of its words is.

    Attributes:
        ink: what layout takes.
        places: box in the page frame and confidence of each word.
    """

    ink: PageInk
    places: tuple[tuple[Box, float], ...]


def recognised_ink(
    reading: PageReading, number: int, width: float, height: float, dpi: float
) -> RecognisedInk:
    """A page made of recognised words.

    Args:
        reading: the words, pixels of the upright picture.
        number: 1-based page.
        width: of the page as shown, points.
        height: of the page as shown, points.
        dpi: resolution of the picture.
    """
    scale = 72.0 / dpi
    turned = reading.turned in (90, 270)
    flow_width, flow_height = (height, width) if turned else (width, height)
    sizes = _sizes(reading.words, scale)
    words, places = [], []
    for line, members in _lines(reading.words).items():
        size = sizes[line]
        for word, base in zip(members, _base_lines(members, size / scale), strict=True):
            low = min(base * scale + _FONT_BOTTOM * size, flow_height)
            box = Box(word.left * scale, max(low - size, 0.0), word.right * scale, low)
            shown = _shown(box, reading.turned, width, height)
            words.append(Word(word.text, box, shown, size, _FACE))
            places.append((shown, word.confidence))
    flow = Flow(reading.turned, tuple(words), (), flow_width, flow_height)
    count = sum(len(word.text) for word in words)
    ink = PageInk(number, width, height, (flow,), characters=count)
    return RecognisedInk(ink, tuple(places))


def confidence_in(box: Box, places: Iterable[tuple[Box, float]]) -> float:
    """Mean confidence of the words inside a box, 1.0 when there is none."""
    found = [c for place, c in places if box.holds((place.left + place.right) / 2, place.middle)]
    return round(sum(found) / len(found), 3) if found else 1.0


def _lines(words: Sequence[OcrWord]) -> dict[tuple[int, int, int], list[OcrWord]]:
    lines: defaultdict[tuple[int, int, int], list[OcrWord]] = defaultdict(list)
    for word in words:
        lines[word.line].append(word)
    return dict(lines)


def _sizes(words: Sequence[OcrWord], scale: float) -> dict[tuple[int, int, int], float]:
    """Font size per line in points; what is nearly the page's usual size is exactly that."""
    by_shape: defaultdict[tuple[float, float], list[int]] = defaultdict(list)
    for word in filter(_has_letters, words):
        by_shape[_shape(word)] += [word.bottom - word.top] * len(word.text)
    # Words of one shape have one height in one size, whatever the typeface: the page is the ruler.
    heights = {shape: median(found) for shape, found in by_shape.items()}
    usual = median(
        [heights[shape] / sum(shape) for shape, found in by_shape.items() for _ in found] or [40.0]
    )
    sizes = {}
    for line, members in _lines(words).items():
        ratios = [(w.bottom - w.top) / heights[_shape(w)] for w in members if _has_letters(w)]
        ratio = median(ratios or [1.0])
        size = usual * scale * (ratio if abs(ratio - 1) > _SAME else 1.0)
        sizes[line] = max(round(size * _STEP) / _STEP, 1.0)
    return sizes


def _has_letters(word: OcrWord) -> bool:
    return _LETTERS.search(word.text) is not None


def _shape(word: OcrWord) -> tuple[float, float]:
    """How far a word's letters reach above and below the base line, in font sizes."""
    return _above(word.text), _below(word.text)


def _above(text: str) -> float:
    return _CAP_HEIGHT if _TALL.search(text) else _X_HEIGHT


def _below(text: str) -> float:
    if _DEEP.search(text):
        return _DESCENT
    return _SHORT_DESCENT if _SHORT.search(text) else 0.0


def _base_lines(words: Sequence[OcrWord], em: float) -> list[float]:
    """Where each word stands, pixels; signs stand where the words of their line stand."""
    bases = [word.bottom - _below(word.text) * em if _has_letters(word) else None for word in words]
    known = [base for base in bases if base is not None]
    usual = median(known) if known else float(max(word.bottom for word in words))
    return [usual if base is None else base for base in bases]


def _shown(box: Box, turned: int, width: float, height: float) -> Box:
    """A box of the upright picture in the page frame."""
    if turned == 90:
        return Box(box.top, height - box.right, box.bottom, height - box.left)
    if turned == 180:
        return Box(width - box.right, height - box.bottom, width - box.left, height - box.top)
    if turned == 270:
        return Box(width - box.bottom, box.left, width - box.top, box.right)
    return box
