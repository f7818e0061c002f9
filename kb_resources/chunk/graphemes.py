"""Borders between user-perceived characters, for texts that offer no better place to cut.

Belongs here: one test per border, stricter than the standard where a full table would be needed
(it may refuse a border the standard allows, never the other way round). Not a segmenter.
See Unicode Standard Annex 29, https://www.unicode.org/reports/tr29/.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_ZWJ: Final = "\u200d"
_LONGEST: Final = 256
# Extend and SpacingMark beyond the categories Mn, Me and Mc.
_EXTEND: Final = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f") | frozenset(
    map(chr, [*range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)])
)
# Prepend: signs that belong to the character after them.
_PREPEND: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd"
    "\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84\U00011a85\U00011a86\U00011a87"
    "\U00011a88\U00011a89\U00011d46\U00011f02"
)


def is_border(text: str, index: int, start: int = 0) -> bool:
    """Whether a cut before `text[index]` leaves every grapheme whole.

    Args:
        text: any text.
        index: a position, `start < index < len(text)`.
        start: a position known to be a border; nothing before it is looked at.
    """
    before, after = text[index - 1], text[index]
    if before.isascii() and after.isascii():
        return not (before == "\r" and after == "\n")
    if joins_left(after) or before == _ZWJ or before in _PREPEND:
        return False
    if unicodedata.combining(before) == 9:  # a virama joins two consonants
        return unicodedata.category(after) != "Lo"
    if _hangul(before) and _hangul(after):
        return not ("\u1100" <= before <= "\u115f" or "\ua960" <= before <= "\ua97c") and not (
            "\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb"
        )
    if _regional(before) and _regional(after):
        run = index
        while run > start and _regional(text[run - 1]):
            run -= 1
        return (index - run) % 2 == 0
    return True


def joins_left(char: str) -> bool:
    """Whether the character belongs to the one before it, whatever that is."""
    return not char.isascii() and (
        char in _EXTEND or unicodedata.category(char) in ("Mn", "Me", "Mc")
    )


def next_border(text: str, index: int, start: int, end: int) -> int:
    """The first border at or after `index`, or `end`; after 256 code points without one, a cut.

    No writing system needs that many for one character; the Stream-Safe Text Format allows 30.

    Args:
        text: any text.
        index: where to start looking, `start < index`.
        start: a position known to be a border.
        end: where to stop, exclusive end of the part of interest.
    """
    end = min(end, index + _LONGEST)
    while index < end and not is_border(text, index, start):
        index += 1
    return min(index, end)


def _hangul(char: str) -> bool:
    return (
        "\u1100" <= char <= "\u11ff" or "\ua960" <= char <= "\ua97c" or "\uac00" <= char <= "\ud7fb"
    )


def _regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
