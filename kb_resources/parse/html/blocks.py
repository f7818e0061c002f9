"""Element tree to draft blocks: every visible text node ends in exactly one block.

Belongs here: the walk over a page that is already free of hidden and noise elements. docling's HTML
reader is not used: on the same pages it lost up to a seventh of the words and doubled nested tables
(docs/adr). Roles of elements follow https://html.spec.whatwg.org/multipage/dom.html#content-models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kb_resources.model import BlockKind
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.html.tables import is_layout, stray_texts, table_rows
from kb_resources.parse.tables import table_drafts

_HEADING = re.compile(r"h[1-6]$")
_INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn"),
        *("em", "font", "i", "ins", "kbd", "label", "mark", "math", "meter", "nobr", "output", "q"),
        *("rb", "rp", "rt", "rtc", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"),
        *("sup", "time", "tt", "u", "var", "wbr", "progress", "summary-text"),
    )
)
_CONTROLS = frozenset(("button", "input", "select", "textarea", "canvas", "audio", "video", "map"))
_BLOCK_IN_INLINE = "|".join(("div", "p", "ul", "ol", "table", "pre", "blockquote", "section"))
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source|brush:?)[-\s]*([\w+#.-]+)")
_ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


class BlockWalker:
    """Turns one element into draft blocks.

    Args:
        locator: locator of every block ("Part 1.2", "Chapter 3"), or None.
        page: page number of every block, or None.
    """

    def __init__(self, *, locator: str | None = None, page: int | None = None) -> None:
        self._locator = locator
        self._page = page
        self._drafts: list[DraftBlock] = []
        self._line: list[str] = []
        self._kind: BlockKind = "paragraph"
        self._marker: str | None = None
        self._depth = 0

    def walk(self, root: Any) -> tuple[DraftBlock, ...]:
        """Draft blocks of an element and everything in it, in document order."""
        self._block(root)
        self._flush()
        drafts, self._drafts = tuple(self._drafts), []
        return drafts

    def _flush(self) -> None:
        text = "".join(self._line)
        self._line = []
        if not text.strip():
            return
        if self._marker is not None:
            self._add("list_item", text, level=self._depth, marker=self._marker)
            self._marker = None
        else:
            self._add(self._kind, text)

    def _add(self, kind: BlockKind, text: str, **more: Any) -> None:
        self._drafts.append(DraftBlock(kind, text, page=self._page, locator=self._locator, **more))

    def _block(self, element: Any) -> None:
        """The inside of a container: its text nodes and children."""
        self._line.append(element.text or "")
        for child in element:
            self._child(child)
            self._line.append(child.tail or "")

    def _child(self, child: Any) -> None:
        tag = child.tag if isinstance(child.tag, str) else ""
        if tag == "br":
            self._line.append("\n")
        elif tag == "img":
            self._line.append(_formula(child))
        elif tag == "math":
            self._line.append(_math(child))
        elif tag in _CONTROLS or not tag:
            return
        elif tag in _INLINE:
            self._block(child)
        else:
            self._flush()
            self._container(child, tag)

    def _container(self, element: Any, tag: str) -> None:
        if _HEADING.match(tag):
            self._marker = None
            self._add("heading", _inline_text(element), level=int(tag[1]))
        elif tag in {"ul", "ol", "menu", "dir"}:
            self._list(element)
        elif tag == "table":
            self._table(element)
        elif tag in {"pre", "listing", "xmp"}:
            self._marker = None
            self._add("code", _preformatted(element), language=_language(element))
        elif tag in {"figcaption", "caption"}:
            self._as("caption", element)
        else:
            self._block(element)
            self._flush()

    def _as(self, kind: BlockKind, element: Any) -> None:
        before, self._kind = self._kind, kind
        self._block(element)
        self._flush()
        self._kind = before

    def _list(self, element: Any) -> None:
        self._depth += 1
        ordered = element.tag == "ol"
        number = _int(element.get("start"), 1)
        self._line.append(element.text or "")
        self._flush()
        for child in element:
            if isinstance(child.tag, str) and child.tag == "li":
                number = _int(child.get("value"), number)
                self._marker = _marker(number, element.get("type")) if ordered else "-"
                number += 1
                self._block(child)
                self._flush()
                self._marker = None
            elif isinstance(child.tag, str):
                self._child(child)
                self._flush()
            if child.tail and child.tail.strip():
                self._line.append(child.tail)
                self._flush()
        self._depth -= 1

    def _table(self, element: Any) -> None:
        self._marker = None
        if is_layout(element):
            self._block(element)
            self._flush()
            return
        for caption in element.iterchildren("caption"):
            self._as("caption", caption)
        for text in stray_texts(element, _inline_text):
            self._line.append(text)
            self._flush()
        rows, header_rows = table_rows(element, _inline_text)
        self._drafts += table_drafts(
            rows, header_rows, lambda _first, _last: self._locator, page=self._page
        )


def _inline_text(element: Any) -> str:
    """All text of an element on one line, a space where blocks and breaks part it."""
    return "".join(_pieces(element)).strip()


def _pieces(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        tag = child.tag if isinstance(child.tag, str) else ""
        if tag == "img":
            yield _formula(child)
        elif tag == "math":
            yield _math(child)
        elif tag and tag not in _CONTROLS:
            inline = tag in _INLINE
            yield "" if inline else " "
            yield from _pieces(child)
            yield "" if inline else " "
        yield child.tail or ""


def _formula(image: Any) -> str:
    """TeX of a formula that is shown as an image; other images say nothing in the body."""
    alt = image.get("alt") or ""
    looks_tex = "\\" in alt and ("math" in (image.get("class") or "") or "\\displaystyle" in alt)
    return f" {alt.strip()} " if looks_tex else ""


def _math(element: Any) -> str:
    for note in element.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower() and note.text:
            return f" {note.text.strip()} "
    return "".join(element.itertext())


def _preformatted(element: Any) -> str:
    for line_break in element.iter("br"):
        line_break.tail = "\n" + (line_break.tail or "")
    return "".join(element.itertext())


def _language(element: Any) -> str | None:
    for candidate in (element, *element.iter("code"), element.getparent()):
        if candidate is not None and (m := _LANGUAGE.search(candidate.get("class") or "")):
            return m[1]
    return None


def _int(text: str | None, default: int) -> int:
    return int(text) if text and re.fullmatch(r"-?\d{1,6}", text.strip()) else default


def _marker(number: int, kind: str | None) -> str:
    if kind in {"a", "A"} and 1 <= number <= 26:
        return f"{chr(ord(kind) + number - 1)}."
    if kind in {"i", "I"} and 1 <= number < 40:
        roman = ""
        rest = number
        for value, letters in _ROMAN:
            while rest >= value:
                roman, rest = roman + letters, rest - value
        return f"{roman.upper() if kind == 'I' else roman}."
    return f"{number}."
