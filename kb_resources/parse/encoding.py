"""Bytes to text without being told the encoding.

Belongs here: telling the code pages of the eight languages and the Unicode forms apart, and saying
so when it can't. Reading the text's structure is the format readers' work. The decision scores what
each code page would make of the bytes: letters of one script, in likely order, in words of one
case; see https://www-archive.mozilla.org/projects/intl/universalcharsetdetection for the idea.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded text.

    Attributes:
        text: what the bytes say.
        encoding: Python's name of the codec.
        certain: False when another code page reads almost as well.
    """

    text: str
    encoding: str
    certain: bool = True


def decode(data: bytes, declared: str | None = None) -> Decoded | None:
    """Decode bytes of unknown encoding.

    Args:
        data: the bytes.
        declared: what the source says (charset of a header or meta tag); believed only where the
            bytes fit.

    Returns:
        The text, or None when the bytes are no text in any encoding known here.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            return _strict(data, name)
    wide = _wide(data)
    if wide is not None:
        return _strict(data, wide)
    if (utf8 := _strict(data, "utf-8")) is not None:
        return utf8
    if declared and (found := _declared(data, declared)) is not None:
        return found
    from kb_resources.parse.codepages import guess

    return guess(data)


def _strict(data: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _declared(data: bytes, declared: str) -> Decoded | None:
    """The declared code page, the way browsers read the labels (Latin-1 means cp1252)."""
    label = declared.strip().strip("\"'").lower()
    aliases = {"iso-8859-1": "cp1252", "latin1": "cp1252", "ascii": "cp1252", "us-ascii": "cp1252"}
    label = aliases.get(label, label)
    if label.replace("_", "-") in {"utf-8", "utf8"}:
        return None  # it was tried and does not fit
    try:
        codecs.lookup(label)
        return Decoded(data.decode(label, "replace"), label)
    except (LookupError, UnicodeDecodeError):
        return None


def _wide(data: bytes) -> str | None:
    """UTF-32 or UTF-16 without a byte order mark, told by where the zero or high bytes stand."""
    sample = data[:4096]
    if len(sample) < 4 or len(data) % 2:
        return None
    if len(data) % 4 == 0:
        for name, low in (("utf-32-le", (1, 2, 3)), ("utf-32-be", (2, 1, 0))):
            quads = len(sample) // 4
            zeros = [sum(sample[i + o] == 0 for i in range(0, quads * 4, 4)) for o in low]
            if zeros[1] >= quads * 0.95 and zeros[2] >= quads * 0.95:
                return name
    even, odd = sample[0::2], sample[1::2]
    candidates = []
    for name, high in (("utf-16-le", odd), ("utf-16-be", even)):
        # In European text the high byte is 0x00-0x04 or 0x20 (punctuation) almost always.
        zeroes = sum(byte <= 0x05 for byte in high) / len(high)
        small = zeroes + high.count(0x20) / len(high)
        if small > 0.95 and zeroes > 0.7:  # letter-spaced ASCII has 0x20 in every second place
            candidates.append((small, name))
    if len(candidates) == 1:
        return candidates[0][1]
    return None
