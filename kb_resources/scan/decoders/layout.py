"""Where a text has long runs of the characters that encodings are made of.

Belongs here: one fast pass over a text that tells the decoders where to look, so that prose costs
next to nothing. Does not belong here: decoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

# Characters that a run may hold, and its least length: shorter ones hold no sentence.
_VISIBLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_KINDS = {
    "dense": (_VISIBLE_ASCII, 16),
    "hex": ("0123456789abcdefABCDEFxX\\ \t\r\n:,;-", 16),
    "digits": ("0123456789 \t\r\n,;", 29),
    "morse": (".-·−– /|", 19),
}
_TABLE_SIZE = 0x2300
# Soft hyphens, fillers, joiners, directional marks, tags, selectors and combining accents.
_INVISIBLE_RANGES = (
    (0xAD, 0xAD), (0x300, 0x36F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x20D0, 0x20FF),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF9, 0xFFFB),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
INVISIBLE = re.compile(
    "[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _INVISIBLE_RANGES) + "]+"
)
# What stands around invisible characters is read with them.
_AROUND = 48
# So many lines in a row of at most so many code points may be one encoding.
_SHORT_LINES, _SHORT_LINE = 4, 34
# So many single letters, each so close to the next, may be a word that was spaced out.
_SINGLES, _SINGLE_GAP = 5, 9


def _table() -> NDArray[np.uint8]:
    """What each code point may be part of: a bit for every kind of run, for words, two scripts."""
    table = np.zeros(_TABLE_SIZE + 1, dtype=np.uint8)
    for kind, (allowed, _) in _KINDS.items():
        table[[ord(character) for character in allowed]] |= _BITS[kind]
    table[:_TABLE_SIZE] |= np.array(
        [_IN_WORD * chr(c).isalnum() for c in range(_TABLE_SIZE)], np.uint8
    )
    table[_TABLE_SIZE] |= _IN_WORD
    table[0x370:0x530] |= _FOREIGN
    table[ord("\n")] |= _LINE_END
    for first in (ord("A"), ord("a")):
        table[first : first + 26] |= _LATIN
    return table


_BITS = {kind: 1 << number for number, kind in enumerate(_KINDS)}
_IN_WORD, _LATIN, _FOREIGN, _LINE_END = 0x80, 0x40, 0x20, 0x10
_TABLE = _table()


@cache
def _invisible_table() -> NDArray[np.bool_]:
    """Which code points are invisible, built once (1.1 MB)."""
    table = np.zeros(0x110000, dtype=np.bool_)
    for low, high in _INVISIBLE_RANGES:
        table[low : high + 1] = True
    return table


class Layout:
    """A text and its runs, found when first asked for.

    Attributes:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, list[tuple[int, int]]] = {}

    @cached_property
    def _bits(self) -> NDArray[np.uint8]:
        """(length + 2,) what each code point may be part of, with a border at either end."""
        bits = np.zeros(len(self.text) + 2, dtype=np.uint8)
        if self.text.isascii():
            bits[1:-1] = _TABLE[np.frombuffer(self.text.encode("ascii"), dtype=np.uint8)]
        else:
            data = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
            bits[1:-1] = _TABLE[np.minimum(data, _TABLE_SIZE)]
        return bits

    @cached_property
    def foreign_share(self) -> float:
        """Share of the text that is Greek or Cyrillic, 0..1; 1 where no Latin letter touches it."""
        if self.text.isascii():
            return 1.0
        bits = self._bits
        touching = (bits[1:] | bits[:-1]) & (_LATIN | _FOREIGN) == _LATIN | _FOREIGN
        if not touching.any():
            return 1.0
        return float(np.count_nonzero(bits & _FOREIGN)) / len(self.text)

    def runs(self, kind: str) -> list[tuple[int, int]]:
        """Spans of runs of one kind, code points, in order.

        Args:
            kind: "dense" (no spaces), "hex" or "digits" (with separators), "morse".
        """
        if kind not in self._found:
            inside = (self._bits & _BITS[kind]).astype(np.bool_)
            edges = np.flatnonzero(inside[1:] != inside[:-1])
            starts, ends = edges[::2], edges[1::2]
            long = ends - starts >= _KINDS[kind][1]
            self._found[kind] = list(zip(starts[long].tolist(), ends[long].tolist(), strict=True))
        return self._found[kind]

    @cached_property
    def invisible(self) -> list[tuple[int, int]]:
        """Stretches around invisible characters, code points, in order and disjoint."""
        if self.text.isascii():
            return []
        data = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        found = np.flatnonzero(_invisible_table()[data])
        if not len(found):
            return []
        breaks = np.flatnonzero(np.diff(found) > 2 * _AROUND)
        starts = found[np.concatenate(([0], breaks + 1))] - _AROUND
        ends = found[np.concatenate((breaks, [len(found) - 1]))] + _AROUND + 1
        return list(
            zip(
                np.maximum(starts, 0).tolist(),
                np.minimum(ends, len(self.text)).tolist(),
                strict=True,
            )
        )

    def around_invisible(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of a pattern that needs an invisible character."""
        for start, end in self.invisible:
            yield from pattern.finditer(self.text, start, end)

    @cached_property
    def short_lines(self) -> list[tuple[int, int]]:
        """Stretches of short lines, none of them empty, code points, in order and disjoint."""
        ends = np.flatnonzero(self._bits & _LINE_END)
        borders = np.concatenate(([0], ends, [len(self.text) + 1]))
        lengths = np.diff(borders) - 1
        short = np.concatenate(([False], (lengths > 0) & (lengths <= _SHORT_LINE), [False]))
        edges = np.flatnonzero(short[1:] != short[:-1])
        return [
            (int(borders[first]), min(int(borders[last]), len(self.text)))
            for first, last in zip(edges[::2], edges[1::2], strict=True)
            if last - first >= _SHORT_LINES
        ]

    @cached_property
    def spaced(self) -> list[tuple[int, int]]:
        """Stretches of single letters with gaps between them, code points."""
        word = (self._bits & _IN_WORD).astype(np.bool_)
        single = np.flatnonzero(word[1:-1] & ~word[:-2] & ~word[2:])
        if len(single) < _SINGLES:
            return []
        breaks = np.flatnonzero(np.diff(single) > _SINGLE_GAP)
        firsts = np.concatenate(([0], breaks + 1))
        lasts = np.concatenate((breaks, [len(single) - 1]))
        return [
            (int(single[first]), int(single[last]) + 1)
            for first, last in zip(firsts, lasts, strict=True)
            if last - first + 1 >= _SINGLES
        ]
