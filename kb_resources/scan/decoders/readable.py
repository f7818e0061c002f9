"""Whether decoded bytes are text that somebody could read.

Belongs here: the one question every decoder asks of its result.
"""

from __future__ import annotations

MIN_CHARS = 6
_MIN_LETTERS = 0.6
# First bytes of Latin and Cyrillic letters and of punctuation in UTF-16.
_HIGH = (b"\x00", b"\x01", b"\x04", b"\x20")


def readable(data: bytes) -> str | None:
    """The bytes as text if they are mostly letters, spaces and punctuation, else None."""
    text = _decoded(data)
    return text if text is not None and looks_readable(text) else None


def _decoded(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A stretch that was cut may end within a character.
        if error.start >= len(data) - 3 and error.start >= MIN_CHARS:
            return data[: error.start].decode("utf-8")
    else:
        if "\0" not in text:
            return text
    for high, codec in ((1, "utf-16-le"), (0, "utf-16-be")):
        bytes_high = data[high::2]
        if len(data) >= 2 * MIN_CHARS and sum(map(bytes_high.count, _HIGH)) > 0.9 * len(bytes_high):
            return data[: len(data) // 2 * 2].decode(codec, "ignore")
    return None


def looks_readable(text: str) -> bool:
    """Whether a text is mostly letters and spaces, with few control characters."""
    if len(text) < MIN_CHARS:
        return False
    good = sum(c.isalpha() or c.isspace() for c in text)
    printable = all(c.isprintable() or c.isspace() for c in text)
    return printable and good >= _MIN_LETTERS * len(text)
