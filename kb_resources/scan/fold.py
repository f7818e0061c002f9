"""Folding of letters: case, width, style and accents, one code point to one.

Belongs here: folds that keep every offset. Does not belong here: anything that changes a text's
length, which is an edit (`offsets`), or look-alikes of other scripts (`disguise`).
Source: Unicode Standard Annex 15 (compatibility decomposition).
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

_RANGES = (
    (0x41, 0x0530), (0x1D00, 0x1E00), (0x1E00, 0x2C00), (0x2C60, 0x2C80), (0x3000, 0x3400),
    (0xA640, 0xA800), (0xAB30, 0xAB70), (0xFB00, 0xFB07), (0xFF00, 0xFFF0), (0x1D400, 0x1D800),
    (0x1F100, 0x1F1B0),
)  # fmt: skip
# Letters that do not decompose; each reads as one plain letter.
# Squared, circled and regional letters A to Z.
_LETTER_BLOCKS = (0x1F130, 0x1F150, 0x1F170, 0x1F1E6)
# Capitals in small, letters upside down, and letters of other scripts that look like Latin ones: of
# scripts in which no rule is written, so that nothing else is lost. Braille of the first grade.
_SHAPED = (
    ("ᴀʙᴄᴅᴇғɢʜɪᴊᴋʟᴍɴᴏᴘǫʀᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrtuvwyz"),
    ("ɐɔǝɟƃɥᴉᴊɾʞɯɹʇʌʍʎ", "acefghijjkmrtvwy"),
    ("օսոհցԁզգԛաҽրտպԼ", "ounhgdqqqwenuul"),
    ("ᎪᏴᏟᎠᎬᏀᎻᏆᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃᎾᏒᏤᎩᎦᎶᏓ", "abcdeghijklmprstvwzorvysgl"),
    ("ꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓢꓔꓴꓦꓪꓫꓬꓜꓣꓮ", "bcdefghijklmnopstuvwxyzra"),
    ("⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀", "abcdefghijklmnopqrstuvwxyz "),
)
_PLAIN = dict(zip("đłøßæœþðıŧħŋſ", "dlosaotdithns", strict=True))


def _fold(char: str) -> str:
    decomposed = unicodedata.normalize("NFKD", char.lower())
    kept = [c for c in decomposed if not unicodedata.combining(c)]
    if len(kept) != 1:
        kept = [c for c in kept if c.isalnum()]
    if len(kept) != 1 or len(kept[0].lower()) != 1:
        return char
    return _PLAIN.get(kept[0].lower(), kept[0].lower())


@cache
def _table() -> NDArray[np.uint32]:
    """What each code point folds to, built once (about 30 ms, 4.4 MB)."""
    table = np.arange(0x110000, dtype=np.uint32)
    for low, high in _RANGES:
        for point in range(low, high):
            table[point] = ord(_fold(chr(point)))
    for shapes, letters in _SHAPED:
        for shape, letter in zip(shapes, letters, strict=True):
            table[[ord(shape), ord(shape.lower())]] = ord(letter)
    for first in _LETTER_BLOCKS:
        table[first : first + 26] = np.arange(ord("a"), ord("a") + 26)
    return table


def fold(text: str) -> str:
    """The text with letters folded; as long as the text itself, lone surrogates kept."""
    if text.isascii():
        return text.lower()
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return _table()[points].tobytes().decode("utf-32-le", "surrogatepass")
