"""Text that a reader does not see: tags, variation selectors, zero-width and bidi characters.

Belongs here: reading such characters, or dropping them. Does not belong here: judging that they
are there at all (`structure`). Source: Boucher et al., "Bad Characters" (2022), and Unicode
Technical Report 36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb_resources.scan.decoders.layout import INVISIBLE, Layout
from kb_resources.scan.decoders.readable import looks_readable, readable
from kb_resources.scan.offsets import Edit

_FLAG = "\U0001f3f4"
_TAGS = re.compile("[\U000e0001-\U000e007f]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_BITS = re.compile("[\u200b-\u200d\u2060-\u2064\ufeff]{16,}")
_OVERRIDE = re.compile("[\u202d\u202e]")
_OVERRIDDEN = re.compile("[\u202d\u202e]([^\n\u202c\u202d\u202e]{1,4000})\u202c?")


def tag_characters(layout: Layout) -> Iterator[Edit]:
    """Tag characters as the ASCII they mirror, flag emoji apart."""
    text = layout.text
    for found in layout.around_invisible(_TAGS):
        if text[found.start() - 1 : found.start()] != _FLAG:
            plain = "".join(chr(ord(c) - 0xE0000) for c in found.group())
            yield Edit(*found.span(), f" {plain.strip(chr(1) + chr(127))} ")


def variation_selectors(layout: Layout) -> Iterator[Edit]:
    """Runs of variation selectors as the bytes that their numbers give."""
    for found in layout.around_invisible(_SELECTORS):
        data = bytes(
            ord(c) - 0xFE00 if ord(c) < 0xFE10 else ord(c) - 0xE0100 + 16 for c in found.group()
        )
        plain = readable(data)
        if plain is not None:
            yield Edit(*found.span(), f" {plain} ")


def zero_width_bits(layout: Layout) -> Iterator[Edit]:
    """Runs of two kinds of zero-width characters as bits, eight to a byte."""
    for found in layout.around_invisible(_BITS):
        kinds = sorted(set(found.group()), key=found.group().count, reverse=True)
        if len(kinds) not in {2, 3}:
            continue
        used = sorted(kinds[:2])
        digits = "".join(str(used.index(c)) for c in found.group() if c in used)
        for bits in (digits, digits.translate(str.maketrans("01", "10"))):
            data = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))
            plain = readable(data)
            if plain is not None:
                yield Edit(*found.span(), f" {plain} ")
                break


def invisible_characters(layout: Layout) -> Iterator[Edit]:
    """Everything invisible dropped, and accents that stand apart."""
    for found in layout.around_invisible(INVISIBLE):
        yield Edit(*found.span(), "")


def bidi_overrides(layout: Layout) -> Iterator[Edit]:
    """What stands behind a right-to-left override, in the order in which it is seen."""
    done = 0
    for control in layout.around_invisible(_OVERRIDE):
        found = _OVERRIDDEN.match(layout.text, control.start())
        if found is None or found.start() < done:
            continue
        done = found.end()
        shown = found.group(1)[::-1]
        if looks_readable(shown):
            yield Edit(*found.span(), f" {shown} ")
