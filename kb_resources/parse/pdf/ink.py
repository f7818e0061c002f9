"""What a PDF page shows, before anything is read into it: words, rules and pictures.

Belongs here: small geometric values shared by the modules of this package and their arithmetic.
Not here: where they come from (`decode`, `pdfium`) and what they mean (`lines` onwards).
Frames: a *page frame* has its origin at the top left of the page as shown, y downwards, in
points. A *flow frame* is the page frame turned so that one direction of writing runs left to
right. See ISO 32000-1, 8.3 for PDF's own coordinate systems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kb_resources.model import BBox


@dataclass(frozen=True, slots=True)
class Face:
    """A font as far as layout cares.

    Attributes:
        name: PostScript name without the subset tag.
        bold: weight of 600 or more.
        italic: slanted.
        mono: fixed pitch.
        symbol: pictures instead of letters (bullets, dingbats).
    """

    name: str
    bold: bool = False
    italic: bool = False
    mono: bool = False
    symbol: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, y downwards, in points."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Horizontal extent in points."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Vertical extent in points."""
        return self.bottom - self.top

    @property
    def middle(self) -> float:
        """Height of the horizontal centre line."""
        return (self.top + self.bottom) / 2

    def holds(self, x: float, y: float, slack: float = 0.0) -> bool:
        """Whether a point lies inside, with `slack` points of tolerance."""
        return (
            self.left - slack <= x <= self.right + slack
            and self.top - slack <= y <= self.bottom + slack
        )

    def overlap_x(self, other: Box) -> float:
        """Length of the common horizontal extent, negative for a gap."""
        return min(self.right, other.right) - max(self.left, other.left)

    def overlap_y(self, other: Box) -> float:
        """Length of the common vertical extent, negative for a gap."""
        return min(self.bottom, other.bottom) - max(self.top, other.top)

    def as_bbox(self) -> BBox:
        """The same rectangle as the model's type, to a hundredth of a point."""
        return BBox(
            round(self.left, 2), round(self.top, 2), round(self.right, 2), round(self.bottom, 2)
        )


def enclose(boxes: Iterable[Box]) -> Box:
    """Smallest rectangle around at least one box."""
    left, top, right, bottom = math.inf, math.inf, -math.inf, -math.inf
    for box in boxes:
        left, top = min(left, box.left), min(top, box.top)
        right, bottom = max(right, box.right), max(bottom, box.bottom)
    return Box(left, top, right, bottom)


@dataclass(frozen=True, slots=True)
class Word:
    """A run of glyphs without a space.

    Attributes:
        text: what it says, in reading order.
        box: place in the flow frame.
        shown: place in the page frame; the same as `box` for upright text.
        size: font size in points, as shown.
        face: its font.
    """

    text: str
    box: Box
    shown: Box
    size: float
    face: Face


@dataclass(frozen=True, slots=True)
class Flow:
    """Words of a page that are written in one direction.

    Attributes:
        angle: direction of writing, degrees counter-clockwise, 0 for upright text.
        words: in the order in which the page paints them.
        rules: straight lines of the page, in this flow's frame.
        width: extent of the page along the direction of writing.
        height: extent across it.
    """

    angle: int
    words: tuple[Word, ...]
    rules: tuple[Box, ...]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageInk:
    """Everything on one page.

    Attributes:
        number: 1-based.
        width: in points, as shown.
        height: in points, as shown.
        flows: the main direction of writing first.
        pictures: bitmaps, page frame.
        drawings: rectangles around connected vector shapes, page frame.
        garbage: number of characters that no font map could name.
        characters: number of visible characters, garbage included.
    """

    number: int
    width: float
    height: float
    flows: tuple[Flow, ...]
    pictures: tuple[Box, ...] = ()
    drawings: tuple[Box, ...] = ()
    garbage: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """Takes points of the page frame into the frame of one direction of writing.

    Attributes:
        angle: degrees counter-clockwise.
        width: extent of the turned page in points.
        height: extent of the turned page in points.
    """

    angle: int
    width: float
    height: float
    _cos: float
    _sin: float
    _dx: float
    _dy: float

    @classmethod
    def of(cls, angle: int, width: float, height: float) -> Turn:
        """The turn that makes text at `angle` on a `width` × `height` page run left to right."""
        cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        corners = [(0.0, 0.0), (width, 0.0), (0.0, height), (width, height)]
        xs = [x * cos - y * sin for x, y in corners]
        ys = [x * sin + y * cos for x, y in corners]
        return cls(angle, max(xs) - min(xs), max(ys) - min(ys), cos, sin, -min(xs), -min(ys))

    def box(self, *points: tuple[float, float]) -> Box:
        """Smallest box of the turned frame around some points of the page frame."""
        xs = [x * self._cos - y * self._sin + self._dx for x, y in points]
        ys = [x * self._sin + y * self._cos + self._dy for x, y in points]
        return Box(min(xs), min(ys), max(xs), max(ys))
