"""EPUB books to a Reading, chapter by chapter in spine order.

Belongs here: the container (https://www.w3.org/TR/epub-33/). Pages of the book are read as HTML
without a noise filter: a book's contents list belongs to the book.
"""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.html.reader import read_page
from kb_resources.parse.html.tree import decode_html
from kb_resources.parse.office.package import Package, attribute, local, open_package
from kb_resources.parse.reading import Reading

_CONTAINER = "META-INF/container.xml"
_FACTS = {
    "title": "title",
    "creator": "author",
    "publisher": "publication",
    "date": "date",
    "language": "language",
    "description": "description",
    "subject": "subject",
    "rights": "rights",
}


def read_epub(data: bytes) -> Reading | Refusal:
    """Read a book.

    Returns:
        Reading without pages, "Chapter n" as locator (n counts the spine), or a Refusal
        (`corrupt`, or `encrypted` for a book under DRM).
    """
    package = open_package(data, "EPUB")
    if isinstance(package, Refusal):
        return package
    if "META-INF/rights.xml" in package.names:
        return Refusal(DocumentState.ENCRYPTED, "The book is under copy protection (DRM).")
    opf_name = _opf_name(package)
    opf = package.xml(opf_name) if opf_name else None
    if opf is None:
        return Refusal(DocumentState.CORRUPT, "The EPUB file has no readable package document.")
    facts, hidden = _facts(opf)
    drafts: list[DraftBlock] = []
    for n, part in enumerate(_spine(opf, opf_name), 1):
        decoded = decode_html(package.read(part)) if part in package.names else None
        if decoded is None:
            continue
        reading = read_page(decoded.text, locator=f"Chapter {n}", noise=False)
        drafts += reading.drafts
        hidden += [HiddenText(h.kind, f"{part}: {h.place}", h.text) for h in reading.hidden]
    return Reading(
        tuple(drafts), "epub", title=facts.get("title", ""), hidden=tuple(hidden), metadata=facts
    )


def _opf_name(package: Package) -> str:
    root = package.xml(_CONTAINER)
    if root is not None:
        for element in root.iter():
            if local(element) == "rootfile" and (path := attribute(element, "full-path")):
                return path
    return next((name for name in package.names if name.endswith(".opf")), "")


def _spine(opf: Any, opf_name: str) -> list[str]:
    folder = posixpath.dirname(opf_name)
    items: dict[str, str] = {}
    order: list[str] = []
    for element in opf.iter():
        if local(element) == "item":
            href = unquote((attribute(element, "href") or "").split("#")[0])
            items[attribute(element, "id") or ""] = posixpath.normpath(posixpath.join(folder, href))
        elif local(element) == "itemref":
            order.append(attribute(element, "idref") or "")
    return [items[name] for name in dict.fromkeys(order) if name in items]


def _facts(opf: Any) -> tuple[dict[str, str], list[HiddenText]]:
    facts: dict[str, str] = {}
    hidden: list[HiddenText] = []
    for element in opf.iter():
        text = (element.text or "").strip()
        if not text or len(element):
            continue
        name = local(element)
        hidden.append(HiddenText("metadata", f"package {name}", text))
        if name in _FACTS:
            facts.setdefault(_FACTS[name], text)
    return facts, hidden
