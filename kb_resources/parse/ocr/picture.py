"""A grey picture of a page, ready for a recogniser.

Belongs here: pixels and their geometry. Decoding files is `parse.image`'s, drawing PDF pages is
`parse.pdf`'s work. The bytes handed over are a PGM (https://netpbm.sourceforge.net/doc/pgm.html):
no encoder, no compression, no metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

DPI = 300.0
"""Resolution at which pages are drawn; Tesseract is trained on about that."""

MAX_PIXELS = 25_000_000
_DARK = 128
_BAND_INCHES = 1.2
_MOST_EDGES = 200
_MARGIN_INCHES = 0.3


@dataclass(frozen=True, slots=True)
class Picture:
    """Grey values of one page.

    Attributes:
        pixels: numpy array (rows, columns) of uint8, 0 is black.
        dpi: pixels per inch of the page.
    """

    pixels: Any
    dpi: float = DPI

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Rows."""
        return int(self.pixels.shape[0])

    def to_pgm(self) -> bytes:
        """The picture as a binary PGM file."""
        import numpy as np

        head = f"P5\n{self.width} {self.height}\n255\n".encode()
        return head + np.ascontiguousarray(self.pixels).tobytes()

    def turned(self, degrees: int) -> Picture:
        """The picture turned clockwise by 0, 90, 180 or 270 degrees."""
        import numpy as np

        return replace(self, pixels=np.rot90(self.pixels, k=-(degrees // 90)))

    def busiest_band(self) -> Picture:
        """The strip of 1.2 inches with the most edges: where the text is densest."""
        import numpy as np

        rows = int(_BAND_INCHES * self.dpi)
        if self.height <= rows + 1:
            return self
        dark = self.pixels < _DARK
        edges = (dark[:, 1:] != dark[:, :-1]).sum(axis=1)
        # A row of noise or a rule has more edges than any row of letters: cap it.
        sums = np.concatenate(([0], np.cumsum(np.minimum(edges, _MOST_EDGES))))
        start = int((sums[rows:] - sums[:-rows]).argmax())
        reach = int(_MARGIN_INCHES * self.dpi)
        # Cut between lines, not through one: the calmest row near each edge.
        first = max(start - reach, 0)
        top = first + int(edges[first : start + 1].argmin())
        end = min(start + rows, self.height - 1)
        bottom = end + int(edges[end : end + reach].argmin())
        return replace(self, pixels=self.pixels[top : bottom + 1])
