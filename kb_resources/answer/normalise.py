"""Folding of text for quote matching, with the way back to the source.

Two spellings of one text (composed or not, typographic or plain quotes, ligatures, soft hyphens,
any white space) fold to the same string; case and words do not. Belongs here: the folding. What
does not: deciding what a match means (`ground`).
See Unicode Standard Annex 15 (NFKC) and Annex 29 (grapheme clusters).
"""

from __future__ import annotations

import re
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
_MARKS = ("Mn", "Mc", "Me")


def _is_plain(char: str) -> bool:
    """Whether a character by itself folds to itself."""
    return not (
        char.isspace()
        or char in _QUOTES
        or char in _DASHES
        or ord(char) in _DROPPED
        or unicodedata.category(char) in _MARKS
        or unicodedata.normalize("NFKC", char) != char
    )


# Latin, Greek and Cyrillic: what most texts are made of, taken over many words at a time.
_WORD = f"[{re.escape(''.join(filter(_is_plain, map(chr, range(0x530)))))}]+"
_PLAIN = re.compile(f"{_WORD}(?: {_WORD})*")


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
    while start < len(text):
        end = _cluster_until(text, start)
        spans.append((start, end))
        start = end
    return spans


def _cluster_until(text: str, start: int) -> int:
    end = start + 1
    while end < len(text) and _extends(text[end]):
        end += 1
    return end


def _plain_until(text: str, start: int) -> int:
    """Where a run of plain characters ends, without one that a mark after it changes."""
    found = _PLAIN.match(text, start)
    if found is None:
        return start
    end = found.end()
    return end - 1 if end < len(text) and _extends(text[end]) else end


def _extends(char: str) -> bool:
    return unicodedata.category(char) in _MARKS or ord(char) in _DROPPED or ord(char) in _JAMO_TAILS


def fold(text: str) -> Folded:
    """Fold a text: NFKC by cluster, plain quotes and dashes, no ignorables, single spaces.

    A line-breaking hyphen is not undone: it is part of what the source says.
    """
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    start, size = 0, len(text)
    while start < size:
        end = _plain_until(text, start)
        if end > start:
            out += text[start:end]
            starts += range(start, end)
            ends += range(start + 1, end + 1)
            start = end
            continue
        end = _cluster_until(text, start)
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
        start = end
    if out and out[-1] == " ":
        del out[-1], starts[-1], ends[-1]
    if out and out[0] == " ":
        del out[0], starts[0], ends[0]
    return Folded("".join(out), tuple(starts), tuple(ends))
