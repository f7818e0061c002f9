"""Text of a page that its reader does not see: collected, then cut out of the tree.

Belongs here: comments, attributes, scripts, templates and whatever styles hide. Navigation and
notices are visible and `noise.py`'s. What counts as rendered follows
https://html.spec.whatwg.org/multipage/rendering.html#hidden-elements.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any

from kb_resources.model import HiddenText
from kb_resources.parse.html.css import (
    HidingRules,
    declarations,
    hiding_rules,
    hiding_way,
    split_comments,
)

MAX_ITEM_CHARS = 100_000
MAX_ITEMS = 5_000

_NEVER_SHOWN = {
    "script": "script",
    "style": "style_sheet",
    "template": "template",
    "noscript": "noscript",
    "noembed": "noscript",
    "noframes": "noscript",
    "datalist": "hidden_element",
    "object": "embedded_object",
    "iframe": "embedded_object",
    "svg": "drawing",
}
_ATTRIBUTES = (
    "alt",
    "title",
    "content",
    "placeholder",
    "summary",
    "label",
    "value",
    "srcdoc",
    "cite",
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_GAP = re.compile(r"[\s+]+")
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{24,}|(?:[0-9a-fA-F]{2}[\s:]?){16,}")
_STRING = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def take_hidden(root: Any) -> tuple[HiddenText, ...]:
    """Collect and remove everything a reader of the page does not see.

    Args:
        root: lxml tree of the page; hidden elements, comments and scripts are removed from it.

    Returns:
        What was found, in document order, at most `MAX_ITEMS` items.
    """
    found: list[HiddenText] = []
    rules = hiding_rules(style.text_content() for style in root.iter("style"))
    has_sheets = (
        bool(rules)
        or any("stylesheet" in (link.get("rel") or "").lower() for link in root.iter("link"))
        or next(root.iter("style"), None) is not None
    )
    doomed: list[Any] = []
    walk = _walk(root)
    for element in walk:
        if not isinstance(element.tag, str):
            _note(found, "html_comment", "comment", element.text or "")
            doomed.append(element)
            continue
        found.extend(_attributes(element))
        way = _way(element, rules, has_sheets)
        if way is None:
            continue
        place = f"<{element.tag}>" + (f" in {_owner(element)}" if element.tag == "span" else "")
        text = _css_words(element) if way == "style_sheet" else _text(element)
        _note(found, way, place, text)
        for inner in element.iter():
            if inner is element:
                continue
            if isinstance(inner.tag, str):
                found.extend(_attributes(inner))
            else:
                _note(found, "html_comment", "comment", inner.text or "")
        doomed.append(element)
        walk.send(True)
    for element in doomed:
        _remove(element)
    return tuple(found[:MAX_ITEMS])


def _walk(root: Any) -> Generator[Any, bool, None]:
    """Elements in document order; `send(True)` skips the element's inside. Never recursive."""
    stack = [root]
    while stack:
        element = stack.pop()
        skip = yield element
        if skip:
            yield None
            continue
        if isinstance(element.tag, str):
            stack.extend(reversed(element))


def _way(element: Any, rules: HidingRules, has_sheets: bool) -> str | None:
    tag = element.tag
    if tag in _NEVER_SHOWN:
        return _NEVER_SHOWN[tag]
    if element.get("hidden") is not None or (tag == "dialog" and element.get("open") is None):
        return "hidden_element"
    if tag == "input":
        return "hidden_element" if (element.get("type") or "").lower() == "hidden" else None
    if style := element.get("style"):
        known = has_sheets or _has_background(element)
        if way := hiding_way(declarations(style), background_known=known):
            return way
    if tag == "font" and (element.get("color") or "").lower() in {"white", "#fff", "#ffffff"}:
        return None if has_sheets or _has_background(element) else "white_text"
    return rules.way(element)


def _has_background(element: Any) -> bool:
    at = element.getparent()
    while at is not None:
        if at.get("bgcolor") or "background" in (at.get("style") or "").lower():
            return True
        at = at.getparent()
    return False


def _attributes(element: Any) -> Iterator[HiddenText]:
    for name, value in element.attrib.items():
        if not (name in _ATTRIBUTES or name.startswith(("data-", "aria-"))):
            continue
        telling = _is_wordy(value) or _ENCODED.search(value) or _INVISIBLE.search(value)
        if name == "alt" or telling:
            label = element.get("name") or element.get("property") or ""
            where = f"attribute {name} of <{element.tag}{' ' + label if label else ''}>"
            if value.strip():
                yield HiddenText("attribute", where, value[:MAX_ITEM_CHARS])


def _note(found: list[HiddenText], kind: str, place: str, text: str) -> None:
    if text.strip() and len(found) < MAX_ITEMS:
        found.append(HiddenText(kind, place, text[:MAX_ITEM_CHARS]))


def _text(element: Any) -> str:
    return " ".join(piece for piece in element.itertext() if piece.strip())


def _is_wordy(text: str) -> bool:
    """Whether at least two pieces between spaces have letters in them."""
    pieces = _GAP.split(text, maxsplit=100)
    return sum(bool(_LETTERS.search(piece)) for piece in pieces) >= 2


def _css_words(element: Any) -> str:
    """Comments and strings of a style sheet: the places where words can stand."""
    rules, comments = split_comments("".join(element.itertext()))
    return "\n".join(text for text in (*comments, *_STRING.findall(rules)) if _is_wordy(text))


def _owner(element: Any) -> str:
    parent = element.getparent()
    return f"<{parent.tag}>" if parent is not None else "the page"


def _remove(element: Any) -> None:
    """Take an element out, keeping the text that follows it."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        previous = element.getprevious()
        if previous is not None:
            previous.tail = (previous.tail or "") + element.tail
        else:
            parent.text = (parent.text or "") + element.tail
    parent.remove(element)
