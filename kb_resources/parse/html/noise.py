"""Navigation, cookie notices and page furniture taken out of a page, every line reported.

Belongs here: what is visible but not what the page says. Hidden text is `hidden.py`'s. An element
goes only by what it declares itself to be (element, ARIA role, class words) or when it is little
more than links to other pages; a table of contents that links within the page stays. Roles follow
https://www.w3.org/TR/wai-aria-1.2/#landmark_roles.
"""

from __future__ import annotations

import re
from typing import Any

from kb_resources.model import RemovedLine
from kb_resources.parse.clean import one_line
from kb_resources.parse.html.blocks import BlockWalker

_ROLES = frozenset(
    ("navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar", "complementary")
)
_NAVIGATION = frozenset(
    (
        *("nav", "navbar", "navigation", "menu", "submenu", "breadcrumb", "breadcrumbs", "sidebar"),
        *("masthead", "share", "sharing", "social", "related", "recommended", "recommendations"),
        *("promo", "promos", "newsletter", "subscribe", "advert", "advertisement", "ads", "ad"),
        *("sponsor", "sponsored", "outbrain", "taboola", "skip", "pagination", "pager", "toolbar"),
        *("navbox", "noprint", "jump", "editsection", "catlinks", "printfooter", "mostpopular"),
    )
)
_COOKIES = frozenset(("cookie", "cookies", "consent", "gdpr", "cookiebanner", "cookieconsent"))
_WORDS = re.compile(r"[A-Za-z][a-z]*|[A-Z]+(?![a-z])")
_CANDIDATES = frozenset(
    (
        *("div", "section", "ul", "ol", "aside", "header", "footer", "form", "table", "p", "dl"),
        *("span", "td"),
    )
)
_KEEP = frozenset(("html", "body", "main", "article"))
_MAX_NOTICE_CHARS = 4_000
_MAX_LINES = 300
_LINE_CHARS = 300


def remove_noise(root: Any) -> tuple[RemovedLine, ...]:
    """Take page furniture out of a tree.

    Args:
        root: lxml tree without hidden elements; it is changed.

    Returns:
        The removed lines, at most 300 of at most 300 characters each.
    """
    body = root.find("body")
    body = root if body is None else body
    total = len(_text(body))
    removed: list[RemovedLine] = []
    stack = list(reversed(body))
    while stack:
        element = stack.pop()
        if not isinstance(element.tag, str):
            continue
        reason = _reason(element, total)
        if reason is None:
            stack.extend(reversed(element))
            continue
        for line in _lines(element):
            if len(removed) < _MAX_LINES:
                removed.append(RemovedLine(None, line[:_LINE_CHARS], reason))
        tail = element.tail
        parent = element.getparent()
        if tail:
            previous = element.getprevious()
            if previous is not None:
                previous.tail = (previous.tail or "") + tail
            else:
                parent.text = (parent.text or "") + tail
        parent.remove(element)
    return tuple(removed)


def _reason(element: Any, total: int) -> str | None:
    tag = element.tag
    if tag in _KEEP:
        return None
    if tag == "nav" or (element.get("role") or "").lower() in _ROLES:
        return "navigation" if _is_minor(element, total) else None
    if tag in {"header", "footer", "aside"} and not _inside_content(element):
        return "navigation" if _is_minor(element, total) and not _holds_title(element) else None
    if tag not in _CANDIDATES:
        return None
    words = {
        w.lower() for w in _WORDS.findall(f"{element.get('class') or ''} {element.get('id') or ''}")
    }
    if words & _COOKIES and _is_minor(element, total) and len(_text(element)) < _MAX_NOTICE_CHARS:
        return "cookie_notice"
    if words & _NAVIGATION and _is_minor(element, total) and not _holds_title(element):
        return "navigation"
    return "navigation" if _is_link_list(element) else None


def _is_minor(element: Any, total: int) -> bool:
    return len(_text(element)) <= total * 0.4


def _holds_title(element: Any) -> bool:
    return next(element.iter("h1"), None) is not None


def _inside_content(element: Any) -> bool:
    at = element.getparent()
    while at is not None:
        if at.tag in {"main", "article"}:
            return True
        at = at.getparent()
    return False


def _is_link_list(element: Any) -> bool:
    """Four or more links to other pages and next to nothing beside them, and no sentence."""
    if element.tag not in {"ul", "ol", "div", "table", "p"}:
        return False
    links = [a for a in element.iter("a") if not (a.get("href") or "#").startswith("#")]
    if len(links) < 4 or next(element.iter("h1", "h2", "pre"), None) is not None:
        return False
    linked = [one_line(_text(a)) for a in links]
    whole = len(one_line(_text(element)))
    if not whole or sum(map(len, linked)) < whole * 0.85:
        return False
    return sum(len(text.split()) > 8 for text in linked) <= len(linked) * 0.25


def _lines(element: Any) -> list[str]:
    """The element's text, a line per block or table row."""
    texts: list[str] = []
    for draft in BlockWalker().walk(element):
        texts += [" ".join(row) for row in draft.rows] or [draft.text]
    return [line for text in texts if (line := one_line(text))]


def _text(element: Any) -> str:
    return "".join(element.itertext()).strip()
