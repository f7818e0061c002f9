"""One alphabet for the South Slavic languages: Cyrillic letters, six bits each.

Belongs here: transliteration between Serbian's two scripts and the packing of up to five letters
into an integer. Does not belong here: any weight or decision.
Source: the correspondence of Gaj's Latin and Serbian Cyrillic alphabets, one letter to one sound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_GRAM = 5
_BITS = 6
_LETTERS = "абвгдђежзијклљмнњопрстћуфхцчџшѓќѕйщъьюяыэёіїєўґ"
_CODE = {letter: code for code, letter in enumerate(_LETTERS, start=1)}
_LATIN = dict(zip("abvgdđežzijklmnoprstćufhcčš", "абвгдђежзијклмнопрстћуфхцчш", strict=True))
_TO_CYRILLIC = str.maketrans(_LATIN)
_TO_LATIN = str.maketrans(
    {cyrillic: latin for latin, cyrillic in _LATIN.items()} | {"љ": "lj", "њ": "nj", "џ": "dž"}
)

# Index by code point; everything that is no letter of the alphabet is 0.
_CODE_BY_POINT: NDArray[np.uint32] = np.zeros(0x500, dtype=np.uint32)
for _letter, _number in _CODE.items():
    _CODE_BY_POINT[ord(_letter)] = _number


def fold_to_cyrillic(text: str) -> str:
    """Lower-case Latin Serbian or Croatian in Serbian Cyrillic; other letters stay."""
    return text.replace("lj", "љ").replace("nj", "њ").replace("dž", "џ").translate(_TO_CYRILLIC)


def to_latin(text: str) -> str:
    """Lower-case Serbian Cyrillic in Latin letters; other letters stay."""
    return text.translate(_TO_LATIN)


def encode_gram(gram: str) -> int | None:
    """Up to five letters as one integer below 2**30, or None for a letter outside the alphabet."""
    packed = 0
    for letter in gram[-MAX_GRAM:]:
        code = _CODE.get(letter)
        if code is None:
            return None
        packed = packed << _BITS | code
    return packed


def gram_codes(text: str) -> NDArray[np.uint32]:
    """Codes of the letter sequences that end at each letter.

    Args:
        text: lower-case Cyrillic.

    Returns:
        Array (letters, 5) uint32; column k holds the sequence of k + 1 letters that ends there,
        or 0 where the word is shorter.
    """
    points = np.frombuffer(text.encode("utf-32-le", "replace"), dtype=np.uint32)
    inside = np.where(points < len(_CODE_BY_POINT), points, 0)
    letters = _CODE_BY_POINT[inside]
    columns: list[NDArray[Any]] = [letters]
    shifted, alive = letters, letters > 0
    for order in range(1, MAX_GRAM):
        shifted = np.concatenate(([np.uint32(0)], shifted[:-1]))
        alive = alive & (shifted > 0)
        columns.append(np.where(alive, columns[-1] | shifted << np.uint32(_BITS * order), 0))
    return np.stack(columns, axis=1)[letters > 0].astype(np.uint32)
