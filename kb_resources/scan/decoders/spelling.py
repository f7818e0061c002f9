"""Words broken up so that no search finds them: spaced letters, pieces of strings, markup.

Belongs here: putting words together again. Does not belong here: other readings of one word
(`disguise`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb_resources.scan.decoders.layout import Layout
from kb_resources.scan.offsets import Edit

_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_](?:[^\w\n\u0300-\u036f]|_){1,8}){4,400}[^\W_](?![^\W_])")
_GAP = re.compile(r"(?:[^\w\n]|_)+")
_JOINED = re.compile(r"""["'`][ \t]{0,4}(?:\+|\.|\|\||&)[ \t]{0,4}\n?[ \t]{0,8}["'`]""")
_MARKUP = re.compile(
    r"</?(?:b|i|u|s|em|strong|span|font|a|sup|sub|small|mark|wbr|tt|code)\b[^<>\n]{0,80}>"
    r"|</?[a-zA-Z][^<>\n]{0,80}>(?=\w)|<!--[^<>\n]{0,80}-->(?=\w)|\*\*(?=\w)|``(?=\w)"
)
_HYPHEN = re.compile(r"[-\u00ac\u2010]\r?\n[ \t]{0,8}(?=\w)")


def spaced_letters(layout: Layout) -> Iterator[Edit]:
    """Letters with gaps between them joined; a wider gap than most is the end of a word."""
    for start, end in layout.spaced:
        yield from _spaced(layout.text, start, end)


def _spaced(text: str, start: int, end: int) -> Iterator[Edit]:
    for found in _SPACED.finditer(text, start, end):
        run = found.group()
        gaps = _GAP.findall(run)
        least = min(gaps, key=len)
        wide = frozenset(gap for gap in gaps if len(gap) > len(least))
        plain = _join(run, wide)
        if sum(c.isalpha() for c in plain) >= 4:
            yield Edit(*found.span(), plain)


def joined_strings(layout: Layout) -> Iterator[Edit]:
    """Pieces of a string that a program would join."""
    text = layout.text
    for found in _JOINED.finditer(text):
        yield Edit(*found.span(), "")


def markup_in_words(layout: Layout) -> Iterator[Edit]:
    """Tags and emphasis marks inside words dropped."""
    text = layout.text
    for found in _MARKUP.finditer(text):
        if found.group()[0] == "<" or text[found.start() - 1 : found.start()].isalnum():
            yield Edit(*found.span(), "")


def hyphenation(layout: Layout) -> Iterator[Edit]:
    """Words that go on in the next line."""
    text = layout.text
    for found in _HYPHEN.finditer(text):
        if text[found.start() - 1 : found.start()].isalnum():
            yield Edit(*found.span(), "")


def _join(run: str, wide: frozenset[str]) -> str:
    return _GAP.sub(lambda gap: " " if gap.group() in wide else "", run)
