"""Where a code point stands: its byte offset and its line.

Belongs here: counting forward through a text once, however many findings there are.
Lone surrogates count three bytes, as `surrogatepass` writes them.
"""

from __future__ import annotations


class Places:
    """Byte offsets and line numbers of a text; cheapest when asked in ascending order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._at = 0
        self._bytes = 0
        self._line_at = 0
        self._line = 1

    def bytes_at(self, position: int) -> int:
        """Number of UTF-8 bytes before a code point."""
        if self._ascii:
            return position
        if position < self._at:
            self._at = self._bytes = 0
        step = self._text[self._at : position].encode("utf-8", "surrogatepass")
        self._at, self._bytes = position, self._bytes + len(step)
        return self._bytes

    def line_at(self, position: int) -> int:
        """1-based number of the line that a code point is in."""
        if position < self._line_at:
            self._line_at, self._line = 0, 1
        self._line += self._text.count("\n", self._line_at, position)
        self._line_at = position
        return self._line
