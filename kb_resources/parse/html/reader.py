"""HTML pages to a Reading.

Belongs here: the order of the steps: decode, parse, take hidden text out, take noise out, walk.
Facts about the page (author, date) are `facts.py`'s.
See https://html.spec.whatwg.org/multipage/semantics.html.
"""

from __future__ import annotations

from typing import Any

from kb_resources.model import Coverage, HiddenText, Refusal
from kb_resources.parse.html.blocks import BlockWalker
from kb_resources.parse.html.facts import page_facts
from kb_resources.parse.html.hidden import take_hidden
from kb_resources.parse.html.noise import remove_noise
from kb_resources.parse.html.tree import decode_html, parse_html
from kb_resources.parse.reading import Reading
from kb_resources.parse.text import uncertain, undecodable


def read_html(data: bytes, name: str, declared: str | None = None) -> Reading | Refusal:
    """Read one page.

    Args:
        data: the bytes.
        name: file name, for reasons.
        declared: charset from the transport (a header), a hint.

    Returns:
        Reading, or a Refusal (`unsupported`) for an unknown encoding.
    """
    decoded = decode_html(data, declared)
    if decoded is None:
        return undecodable(name)
    reading = read_page(decoded.text)
    if decoded.certain:
        return reading
    return Reading(
        reading.drafts,
        reading.parser,
        title=reading.title,
        hidden=reading.hidden,
        coverage=Coverage(warnings=(uncertain(decoded.encoding),)),
        removed=reading.removed,
        metadata=reading.metadata,
    )


def read_page(
    text: str, *, locator: str | None = None, page: int | None = None, noise: bool = True
) -> Reading:
    """Read decoded HTML.

    Args:
        text: HTML source.
        locator: locator of every block.
        page: page number of every block.
        noise: take navigation and notices out; off for parts of a book or a message.

    Returns:
        Reading of parser "html".
    """
    root = parse_html(text)
    title, metadata = page_facts(root)
    stated = " ".join("".join(element.itertext()) for element in root.findall(".//title")).strip()
    hidden = take_hidden(root)
    removed = remove_noise(root) if noise else ()
    drafts = BlockWalker(locator=locator, page=page).walk(_body(root))
    if removed and not drafts:  # a page of links is what it is about
        return read_page(text, locator=locator, page=page, noise=False)
    if stated:
        hidden = (*hidden, HiddenText("metadata", "<title>", stated))
    return Reading(drafts, "html", title=title, hidden=hidden, removed=removed, metadata=metadata)


def _body(root: Any) -> Any:
    head = root.find("head")
    if head is not None:
        root.remove(head)
    return root
