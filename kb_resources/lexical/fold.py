"""Spelling made comparable: Unicode form, script, diacritics.

Belongs here: character-level rewriting that keeps words apart from each other. What does not:
finding words (`tokens`) and cutting endings (`stems`).
Source for the letters: ISO 9 and the Serbian one-to-one alphabets (Vuk's rule).
"""

from __future__ import annotations

import re
import unicodedata

# Characters that show nothing: soft hyphen, zero-width, bidi marks, tags, variation selectors.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_STRAY_MARKS = re.compile("[\u0300-\u036f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
CYRILLIC = re.compile("[\u0400-\u052f]")

_SERBIAN_CYRILLIC = "абвгдђежзијклљмнњопрстћуфхцчџш"
_SERBIAN_LATIN = [*"abvgdđežzijkl", "lj", *"mn", "nj", *"oprstćufhcč", "dž", "š"]
_TO_LATIN = str.maketrans(dict(zip(_SERBIAN_CYRILLIC, _SERBIAN_LATIN, strict=True)))

# Letters that NFD does not take apart.
_UNDECOMPOSED = str.maketrans(
    {"đ": "d", "ð": "d", "ł": "l", "ø": "o", "ħ": "h", "ı": "i", "ŧ": "t"}
    | {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th", "ё": "е", "ѐ": "е", "ѝ": "и"}
)


def visible(text: str) -> str:
    """NFKC with invisible characters, stray accents and lone surrogates taken out.

    Case is kept, since identifiers are told by it. A lone surrogate becomes a space.
    """
    if text.isascii():
        return text
    text = _SURROGATES.sub(" ", text)
    return _STRAY_MARKS.sub("", unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)))


def is_cyrillic(word: str) -> bool:
    """Whether a word has a Cyrillic letter."""
    return CYRILLIC.search(word) is not None


def to_latin(word: str) -> str:
    """A lowercase Serbian word in Latin letters; other letters stay."""
    return word.translate(_TO_LATIN)


def fold(word: str) -> str:
    """A lowercase word without Latin diacritics (`đ` is `d`); Cyrillic `й` and `ќ` stay letters."""
    if word.isascii():
        return word
    word = word.translate(_UNDECOMPOSED)
    if is_cyrillic(word):
        return word
    return _STRAY_MARKS.sub("", unicodedata.normalize("NFD", word))
