"""A TrueType font cut down to the glyphs of one document, for embedding in a PDF.

Belongs here: reading the tables that a CIDFontType2 needs and writing them again with new glyph
numbers. Format: the OpenType specification, https://learn.microsoft.com/typography/opentype/spec/.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_KEPT_AS_THEY_ARE = ("cvt ", "fpgm", "prep")


@dataclass(frozen=True, slots=True)
class Subset:
    """The embedded font.

    Attributes:
        data: the font file.
        glyphs: new glyph number of each character.
        widths: advance of each new glyph, in thousandths of the font size.
        box: bounding box, same unit.
        ascent: same unit.
        descent: same unit, negative.
    """

    data: bytes
    glyphs: dict[str, int]
    widths: list[int]
    box: tuple[int, int, int, int]
    ascent: int
    descent: int


class Font:
    """A TrueType file with outlines in `glyf`."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        count = struct.unpack(">H", data[4:6])[0]
        self._tables: dict[str, bytes] = {}
        for index in range(count):
            tag, _, offset, length = struct.unpack(">4sIII", data[12 + 16 * index :][:16])
            self._tables[tag.decode()] = data[offset : offset + length]
        head = self._tables["head"]
        self._unit = struct.unpack(">H", head[18:20])[0]
        glyphs = struct.unpack(">H", self._tables["maxp"][4:6])[0]
        loca = self._tables["loca"]
        if struct.unpack(">h", head[50:52])[0]:
            self._offsets = struct.unpack(f">{glyphs + 1}I", loca[: 4 * glyphs + 4])
        else:
            self._offsets = tuple(
                2 * short for short in struct.unpack(f">{glyphs + 1}H", loca[: 2 * glyphs + 2])
            )
        self._characters = _cmap(self._tables["cmap"])

    def width(self, text: str) -> float:
        """Advance of a text, in units of the font size."""
        return sum(self._advance(self._characters[char]) for char in text) / self._unit

    def subset(self, characters: set[str]) -> Subset:
        """The font with the glyphs of these characters alone."""
        old = [0]
        numbers = {0: 0}

        def number(glyph: int) -> int:
            if glyph not in numbers:
                numbers[glyph] = len(old)
                old.append(glyph)
            return numbers[glyph]

        glyphs = {char: number(self._characters[char]) for char in sorted(characters)}
        outlines: list[bytes] = []
        while len(outlines) < len(old):  # parts of composite glyphs are appended on the way
            outlines.append(_renumbered(self._outline(old[len(outlines)]), number))
        scale = 1000 / self._unit
        box = struct.unpack(">4h", self._tables["head"][36:44])
        ascent, descent = struct.unpack(">hh", self._tables["hhea"][4:8])
        return Subset(
            data=self._write(old, outlines),
            glyphs=glyphs,
            widths=[round(self._advance(glyph) * scale) for glyph in old],
            box=(
                round(box[0] * scale),
                round(box[1] * scale),
                round(box[2] * scale),
                round(box[3] * scale),
            ),
            ascent=round(ascent * scale),
            descent=round(descent * scale),
        )

    def _metric(self, glyph: int) -> tuple[int, int]:
        metrics = struct.unpack(">H", self._tables["hhea"][34:36])[0]
        table = self._tables["hmtx"]
        if glyph < metrics:
            advance, bearing = struct.unpack(">Hh", table[4 * glyph : 4 * glyph + 4])
            return advance, bearing
        advance = struct.unpack(">H", table[4 * metrics - 4 : 4 * metrics - 2])[0]
        start = 4 * metrics + 2 * (glyph - metrics)
        return advance, struct.unpack(">h", table[start : start + 2])[0]

    def _advance(self, glyph: int) -> int:
        return self._metric(glyph)[0]

    def _outline(self, glyph: int) -> bytes:
        return self._tables["glyf"][self._offsets[glyph] : self._offsets[glyph + 1]]

    def _write(self, old: list[int], outlines: list[bytes]) -> bytes:
        padded = [outline + bytes(-len(outline) % 4) for outline in outlines]
        offsets = [0]
        for outline in padded:
            offsets.append(offsets[-1] + len(outline))
        head = bytearray(self._tables["head"])
        head[8:12] = bytes(4)
        head[50:52] = struct.pack(">h", 1)
        tables = {
            "head": bytes(head),
            "hhea": self._tables["hhea"][:34] + struct.pack(">H", len(old)),
            "maxp": self._tables["maxp"][:4]
            + struct.pack(">H", len(old))
            + self._tables["maxp"][6:],
            "hmtx": b"".join(struct.pack(">Hh", *self._metric(glyph)) for glyph in old),
            "loca": struct.pack(f">{len(offsets)}I", *offsets),
            "glyf": b"".join(padded),
        }
        tables |= {tag: self._tables[tag] for tag in _KEPT_AS_THEY_ARE if tag in self._tables}
        return _assemble(tables)


def _cmap(table: bytes) -> dict[str, int]:
    """Characters of the Basic Multilingual Plane, from the subtable of format 4."""
    for index in range(struct.unpack(">H", table[2:4])[0]):
        offset = struct.unpack(">I", table[8 + 8 * index : 12 + 8 * index])[0]
        if struct.unpack(">H", table[offset : offset + 2])[0] == 4:
            return _format_4(table[offset:])
    raise ValueError("The font has no character map of format 4.")


def _format_4(table: bytes) -> dict[str, int]:
    count = struct.unpack(">H", table[6:8])[0] // 2
    ends = struct.unpack(f">{count}H", table[14 : 14 + 2 * count])
    at = 16 + 2 * count
    starts = struct.unpack(f">{count}H", table[at : at + 2 * count])
    deltas = struct.unpack(f">{count}H", table[at + 2 * count : at + 4 * count])
    ranges_at = at + 4 * count
    ranges = struct.unpack(f">{count}H", table[ranges_at : ranges_at + 2 * count])
    found = {}
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for code in range(start, min(end, 0xFFFE) + 1):
            glyph = code
            if ranges[index]:
                place = ranges_at + 2 * index + ranges[index] + 2 * (code - start)
                glyph = struct.unpack(">H", table[place : place + 2])[0]
                if not glyph:
                    continue
            found[chr(code)] = (glyph + deltas[index]) & 0xFFFF
    return found


def _renumbered(outline: bytes, number: Callable[[int], int]) -> bytes:
    """An outline whose parts, if it is composite, have their new numbers."""
    if len(outline) < 10 or struct.unpack(">h", outline[:2])[0] >= 0:
        return outline
    result = bytearray(outline)
    at, more = 10, True
    while more:
        flags, glyph = struct.unpack(">HH", result[at : at + 4])
        result[at + 2 : at + 4] = struct.pack(">H", number(glyph))
        at += 4 + (4 if flags & 1 else 2)
        at += 2 if flags & 8 else 4 if flags & 0x40 else 8 if flags & 0x80 else 0
        more = bool(flags & 0x20)
    return bytes(result)


def _assemble(tables: dict[str, bytes]) -> bytes:
    count = len(tables)
    power = 1 << (count.bit_length() - 1)
    header = struct.pack(
        ">IHHHH", 0x10000, count, 16 * power, power.bit_length() - 1, 16 * (count - power)
    )
    directory, body = b"", b""
    start = 12 + 16 * count
    for tag in sorted(tables):
        data = tables[tag]
        padded = data + bytes(-len(data) % 4)
        total = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        directory += struct.pack(">4sIII", tag.encode(), total, start + len(body), len(data))
        body += padded
    return header + directory + body
