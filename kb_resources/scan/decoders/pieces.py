"""Base64 cut into pieces: short lines, or each word by itself.

Belongs here: pieces too short for `encodings`, told by standing together. Source: RFC 4648.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from kb_resources.scan.decoders.encodings import unpacked64
from kb_resources.scan.decoders.layout import Layout
from kb_resources.scan.decoders.readable import readable
from kb_resources.scan.offsets import Edit

# Four lines or more of one short run each.
_LINES = re.compile(
    r"(?:^[ \t>|#*-]{0,8}[A-Za-z0-9+/_-]{2,15}={0,2}[ \t|]{0,8}(?:\r?\n|\Z)){4,500}", re.MULTILINE
)
_LINE_ENDS = re.compile(r"[ \t>|#*\r\n]+")
# The end of a word in padding, told by a fixed first sign; and the words of a line.
_PADDING = re.compile(r"={1,2}(?=[\s\"'.,;:)]|\Z)")
_WORD = re.compile(r"[A-Za-z0-9+/]{2,80}={0,2}")
_LEAST_PADDED = 2
_LINE_CHARS = 4_000


def base64_lines(layout: Layout) -> Iterator[Edit]:
    """Base64 over lines that are too short to be told one by one."""
    for start, end in layout.short_lines:
        for found in _LINES.finditer(layout.text, start, end):
            plain = _plain(_LINE_ENDS.sub("", found.group()).rstrip("="))
            if plain is not None:
                yield Edit(*found.span(), f" {plain} ")


def base64_words(layout: Layout) -> Iterator[Edit]:
    """Words that are base64 each for itself, in lines where several end in padding."""
    text = layout.text
    if text.count("=") < _LEAST_PADDED:
        return
    done = last = 0
    for padding in _PADDING.finditer(text):
        at = padding.start()
        if at < done or not text[at - 1 : at].isalnum():
            continue
        start = max(done, text.rfind("\n", max(0, at - _LINE_CHARS), at) + 1)
        if last <= start:
            # The first of its line: more have to come.
            last = at
            continue
        end = text.find("\n", at, at + _LINE_CHARS)
        done = last = end if end >= 0 else min(len(text), at + _LINE_CHARS)
        for word in _WORD.finditer(text, start, done):
            plain = _letters(word.group())
            if plain is not None:
                yield Edit(*word.span(), plain)


def _plain(packed: str) -> str | None:
    try:
        return readable(unpacked64(packed))
    except binascii.Error:
        return None


def _letters(word: str) -> str | None:
    """The word decoded, if that gives letters with at most some punctuation."""
    if len(word) % 4:
        return None
    try:
        plain = unpacked64(word.rstrip("=")).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    bare = plain.strip(" .,:;!?\"'()")
    return plain if bare.isalpha() else None
