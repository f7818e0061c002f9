"""Characters written as escapes: HTML entities, percent signs, backslashes, quoted-printable.

Belongs here: escapes of the formats that documents are made of. Source: HTML Living Standard,
RFC 3986, RFC 2045, RFC 8259.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

from kb_resources.scan.decoders.layout import Layout
from kb_resources.scan.offsets import Edit

_ENTITY = re.compile(r"(?:&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});)")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2})*")
_ESCAPE = r"\\(?:u\{?[0-9a-fA-F]{4,6}\}?|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[0-3][0-7]{2})"
# Both start with a fixed character, which the engine finds fast.
_BACKSLASH = re.compile(rf"{_ESCAPE}(?:{_ESCAPE})*")
_NOTATION = re.compile(r"U\+[0-9a-fA-F]{4,5} ?(?:U\+[0-9a-fA-F]{4,5} ?)*")
_ONE = re.compile(
    r"\\u\{?([0-9a-fA-F]{4,6})\}?|\\U([0-9a-fA-F]{8})|\\x([0-9a-fA-F]{2})|\\([0-3][0-7]{2})"
    r"|U\+([0-9a-fA-F]{4,5}) ?"
)
_QUOTED = re.compile(r"=(?:[0-9A-F]{2}(?:=[0-9A-F]{2})*|\r?\n)")
# A text with fewer of them is a formula.
_MIN_QUOTED = 3


def html_entities(layout: Layout) -> Iterator[Edit]:
    """Numbered and named entities as their characters."""
    text = layout.text
    if "&" not in text:
        return
    for found in _ENTITY.finditer(text):
        plain = html.unescape(found.group())
        if plain != found.group():
            yield Edit(*found.span(), plain)


def percent(layout: Layout) -> Iterator[Edit]:
    """Percent-encoded bytes as their characters."""
    text = layout.text
    if "%" not in text:
        return
    for found in _PERCENT.finditer(text):
        plain = unquote(found.group(), errors="replace")
        if "\ufffd" not in plain:
            yield Edit(*found.span(), plain)


def backslash(layout: Layout) -> Iterator[Edit]:
    """Escapes of JSON, Python, C and Unicode notation as their characters."""
    text = layout.text
    found = [*_BACKSLASH.finditer(text), *_NOTATION.finditer(text)]
    for one in sorted(found, key=lambda match: match.start()):
        plain = _ONE.sub(_character, one.group())
        # Surrogate pairs, as JSON writes what lies beyond four digits.
        joined = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield Edit(*one.span(), _as_bytes(joined))


def _as_bytes(plain: str) -> str:
    """What escapes of single bytes say together as UTF-8, or the text as it is."""
    if plain.isascii():
        return plain
    try:
        return plain.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return plain


def quoted_printable(layout: Layout) -> Iterator[Edit]:
    """Bytes written =XX, and soft line breaks, where a text has several of them."""
    text = layout.text
    found = list(_QUOTED.finditer(text)) if text.count("=") >= _MIN_QUOTED else []
    if sum(one.group().count("=") for one in found) < _MIN_QUOTED:
        return
    for one in found:
        data = bytes(int(pair, 16) for pair in one.group().strip("=\r\n").split("=") if pair)
        plain = data.decode("utf-8", "replace")
        if "\ufffd" not in plain:
            yield Edit(*one.span(), plain)


def _character(found: re.Match[str]) -> str:
    codes = found.groups()
    if codes[3]:
        return chr(int(codes[3], 8))
    number = int(next(c for c in codes if c), 16)
    return chr(number) if number < 0x110000 else "\ufffd"
