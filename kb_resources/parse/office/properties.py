"""Facts and hidden text every Office Open XML file may carry beside its pages.

Belongs here: document properties, comments, descriptions of pictures. Hidden runs, sheets, rows and
slides belong to the format's own module. Property names follow ECMA-376 part 1, 15.2.12.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb_resources.model import HiddenText
from kb_resources.parse.office.package import Package, attribute, local

_FACTS = {
    "title": "title",
    "creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "description": "description",
    "created": "created",
    "modified": "modified",
    "language": "language",
    "category": "category",
}
_SAYING = re.compile(r"^(?!(?:true|false)$).*[^\W\d_]{2}", re.DOTALL)  # letters, no mere switch
_DESCRIBED = frozenset(("docPr", "cNvPr"))


def properties(package: Package) -> tuple[dict[str, str], list[HiddenText]]:
    """Facts from the core properties, and every property's text for the scan."""
    facts: dict[str, str] = {}
    hidden: list[HiddenText] = []
    for part in ("docProps/core.xml", "docProps/app.xml", "docProps/custom.xml"):
        root = package.xml(part)
        if root is None:
            continue
        for element in root.iter():
            text = (element.text or "").strip()
            if len(element) or not _SAYING.search(text):
                continue
            name = local(element)
            if part.endswith("core.xml") and name in _FACTS:
                facts[_FACTS[name]] = text
            hidden.append(HiddenText("metadata", f"{part} {name}", text))
    return facts, hidden


def comments(package: Package, prefix: str) -> Iterator[HiddenText]:
    """Review comments of a document, a presentation or a workbook."""
    for name in package.names:
        if name.startswith(prefix) and "comment" in name.lower() and name.endswith(".xml"):
            root = package.xml(name)
            if root is None:
                continue
            for element in root.iter():
                if local(element) in {"comment", "cm", "threadedComment"} and (
                    text := joined_text(element)
                ):
                    yield HiddenText("comment", name, text)


def descriptions(package: Package, names: Iterator[str]) -> Iterator[HiddenText]:
    """Alternative texts and titles of pictures, charts and shapes."""
    for name in names:
        root = package.xml(name)
        if root is None:
            continue
        for element in root.iter():
            if local(element) not in _DESCRIBED:
                continue
            for key in ("descr", "title"):
                if (text := attribute(element, key)) and text.strip():
                    yield HiddenText("attribute", f"{name} {key} of a picture or shape", text)


def joined_text(element: object) -> str:
    """The text of an element with a space between paragraphs."""
    parts: list[str] = []
    for inner in element.iter():  # type: ignore[attr-defined]
        kind = local(inner)
        if kind in {"t", "text", "delText", "instrText"}:
            parts.append(inner.text or "")
        elif kind in {"p", "br", "tab"} and parts:
            parts.append(" ")
    return "".join(parts).strip()
