"""Bytes of HTML to an element tree of bounded depth.

Belongs here: encoding, the depth guard, the parser's settings. What is visible is `hidden.py`'s and
`noise.py`'s question. External references are never resolved: the parser has no network and no
entities beyond HTML's own (https://html.spec.whatwg.org/multipage/parsing.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kb_resources.parse.clean import well_formed
from kb_resources.parse.encoding import Decoded, decode

MAX_DEPTH = 120
"""Deepest nesting kept; containers below it are dissolved into their parent, text stays."""

# Elements that bring others with them: rows and cells, items.
_WEIGHTS = {"table": 4, "ul": 2, "ol": 2, "menu": 2, "dir": 2, "dl": 2}

_META_CHARSET = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w:.-]+)", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_TAG = re.compile(r"<!--|<(/?)([a-zA-Z][^\s/<>]*)[^<>]*>")
# Elements that end by themselves, so that an open tag alone is no nesting.
_UNNESTED = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr", "p", "li", "td", "th", "tr", "dt", "dd", "option", "thead"),
        *("tbody", "tfoot"),
    )
)


def decode_html(data: bytes, declared: str | None = None) -> Decoded | None:
    """Decode a page: byte order mark, UTF-8 where it fits, header or meta charset, then a guess."""
    head = data[:4096]
    meta = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    return decode(data, declared or (meta[1].decode("ascii") if meta else None))


def parse_html(text: str) -> Any:
    """The element tree of a page.

    Args:
        text: decoded source.

    Returns:
        lxml root element `<html>`; broken markup is repaired as lxml does, an empty text gives an
        empty page.
    """
    import lxml.etree
    import lxml.html

    text = _XML_DECLARATION.sub("", text.replace("\x00", ""), count=1)
    text = limit_depth(text)
    parser: Any = lxml.html.HTMLParser(
        huge_tree=True, encoding="utf-8", no_network=True, remove_pis=True, default_doctype=False
    )
    empty = "<html><body></body></html>"
    try:
        source = well_formed(text).strip() or empty
        return lxml.html.document_fromstring(source.encode(), parser, ensure_head_body=True)
    except lxml.etree.ParserError:  # nothing but stray end tags or comments
        return lxml.html.document_fromstring(empty, parser, ensure_head_body=True)


def limit_depth(text: str, limit: int = MAX_DEPTH) -> str:
    """The source without the tags of containers nested deeper than the limit; linear in its size.

    Optional end tags (`</p>`, `</li>`) are not counted as nesting.
    """
    if text.count("<") < limit:
        return text
    depth, out, last = 0, [], 0
    for match in _tags(text):
        weight = _WEIGHTS.get(match[2].lower(), 1)
        if match[1]:
            too_deep = depth > limit
            depth = max(depth - weight, 0)
        else:
            depth += weight
            too_deep = depth > limit
        if too_deep:
            out += [text[last : match.start()], "\n"]
            last = match.end()
    return "".join([*out, text[last:]])


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Start and end tags of elements that can nest, comments skipped."""
    at = 0
    while match := _TAG.search(text, at):
        at = match.end()
        if match[0] == "<!--":
            at = text.find("-->", at)
            if at < 0:
                return
        elif match[2].lower() not in _UNNESTED and not match[0].endswith("/>"):
            yield match
