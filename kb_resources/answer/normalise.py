"""Folding of text for quote matching, with the way back to the source.

Two spellings of one text (composed or not, typographic or plain quotes, ligatures, soft hyphens,
any white space) fold to the same string; case and words do not. Belongs here: the folding. What
does not: deciding what a match means (`ground`).
See Unicode Standard Annex 15 (NFKC) and Annex 29 (grapheme clusters).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

_QUOTES = dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u0060\u00b4", "'")
_QUOTES |= dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"')
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
_FOLDED = str.maketrans(_QUOTES | _DASHES)
# Default-ignorable: soft hyphen, zero-width, bidi marks and isolates, tags, variation selectors.
_DROPPED = frozenset(
    (
        *(0xAD, 0x34F, 0x61C, 0x180E, 0xFEFF),
        *(*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)),
        *(*range(0xFE00, 0xFE10), *range(0xE0000, 0xE01F0)),
    )
)
_JAMO_TAILS = range(0x1160, 0x1200)


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text and where each of its characters came from.

    Attributes:
        text: folded text.
        starts: for each character of `text`, code point in the source where its cluster begins.
        ends: likewise where it ends, exclusive.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def clusters(text: str) -> list[tuple[int, int]]:
    """Half-open code point spans of user-perceived characters, combining marks with their base."""
    spans: list[tuple[int, int]] = []
    start = 0
    for at in range(1, len(text) + 1):
        if at == len(text) or not _extends(text[at]):
            spans.append((start, at))
            start = at
    return spans if text else []


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in ("Mn", "Mc", "Me")
        or ord(char) in _DROPPED
        or ord(char) in _JAMO_TAILS
    )


def fold(text: str) -> Folded:
    """Fold a text: NFKC by cluster, plain quotes and dashes, no ignorables, single spaces.

    A line-breaking hyphen is not undone: it is part of what the source says.
    """
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in clusters(text):
        kept = "".join(char for char in text[start:end] if ord(char) not in _DROPPED)
        for char in unicodedata.normalize("NFKC", kept).translate(_FOLDED):
            if char.isspace():
                if out and out[-1] == " ":
                    ends[-1] = end
                    continue
                char = " "
            out.append(char)
            starts.append(start)
            ends.append(end)
    if out and out[-1] == " ":
        del out[-1], starts[-1], ends[-1]
    if out and out[0] == " ":
        del out[0], starts[0], ends[0]
    return Folded("".join(out), tuple(starts), tuple(ends))
