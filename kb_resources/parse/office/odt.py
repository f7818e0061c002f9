"""OpenDocument text to a Reading.

Belongs here: content.xml and meta.xml of .odt files. docling reads ODF through a package that is
not part of this installation. Elements follow OpenDocument 1.3 part 3,
https://docs.oasis-open.org/office/OpenDocument/v1.3/.
"""

from __future__ import annotations

from typing import Any

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.office.docx import title_of
from kb_resources.parse.office.package import Package, attribute, local, open_package
from kb_resources.parse.reading import Reading
from kb_resources.parse.tables import table_drafts

_SKIPPED = frozenset(
    ("note-citation", "annotation", "tracked-changes", "sequence-decls", "ruby-text")
)
_HIDDEN = {
    "annotation": "comment",
    "tracked-changes": "deleted_text",
    "hidden-text": "vanish",
    "hidden-paragraph": "vanish",
    "desc": "attribute",
    "script": "script",
}
_META = {
    "title": "title",
    "creator": "author",
    "initial-creator": "author",
    "subject": "subject",
    "keyword": "keywords",
    "description": "description",
    "creation-date": "created",
    "date": "modified",
    "language": "language",
}


def read_odt(data: bytes) -> Reading | Refusal:
    """Read an OpenDocument text.

    Returns:
        Reading without pages, or a Refusal (`corrupt`).
    """
    package = open_package(data, "OpenDocument")
    if isinstance(package, Refusal):
        return package
    root = package.xml("content.xml")
    body = (
        next((e for e in root.iter() if local(e) == "text" and len(e)), None)
        if root is not None
        else None
    )
    if body is None:
        return Refusal(
            DocumentState.CORRUPT, "The OpenDocument file has no readable content; save it again."
        )
    facts, hidden = _facts(package)
    invisible = _invisible_styles(root)
    walker = _Walker(invisible)
    walker.blocks(body)
    hidden += walker.hidden
    return Reading(
        tuple(walker.drafts),
        "odt",
        title=title_of(walker.drafts, facts.get("title", "")),
        hidden=tuple(hidden),
        metadata=facts,
    )


class _Walker:
    def __init__(self, invisible: frozenset[str]) -> None:
        self.drafts: list[DraftBlock] = []
        self.hidden: list[HiddenText] = []
        self._invisible = invisible

    def blocks(self, element: Any, depth: int = 0) -> None:
        for child in element:
            name = local(child)
            if name == "h":
                level = int(attribute(child, "outline-level") or 1)
                self._add("heading", child, level=min(max(level, 1), 6))
            elif name == "p":
                self._add("paragraph", child)
            elif name == "list":
                self._list(child, depth + 1)
            elif name == "table":
                self._table(child)
            elif name in _HIDDEN:
                self._hide(child)
            elif name not in _SKIPPED:
                self.blocks(child, depth)

    def _add(self, kind: Any, element: Any, **more: Any) -> None:
        text = self.text(element)
        if text.strip():
            self.drafts.append(DraftBlock(kind, text, **more))
        for note in element.iter():
            if local(note) == "note-body" and (text := self.text(note)).strip():
                self.drafts.append(DraftBlock("footnote", text))

    def _list(self, element: Any, depth: int) -> None:
        for item in element:
            marked = False
            for child in item:
                name = local(child)
                if name == "list":
                    self._list(child, depth + 1)
                elif name in {"p", "h"} and (text := self.text(child)).strip():
                    if marked:
                        self.drafts.append(DraftBlock("paragraph", text))
                    else:
                        self.drafts.append(DraftBlock("list_item", text, level=depth, marker="-"))
                        marked = True

    def _table(self, element: Any) -> None:
        rows: list[list[str]] = []
        headers = 0
        for row in element.iter():
            if local(row) != "table-row":
                continue
            cells: list[str] = []
            for cell in row:
                if local(cell) in {"table-cell", "covered-table-cell"}:
                    repeat = min(int(attribute(cell, "number-columns-repeated") or 1), 100)
                    cells += [self.text(cell)] * repeat
            while cells and not cells[-1].strip():
                cells.pop()
            if cells:
                rows.append(cells)
                parent = row.getparent()
                headers += parent is not None and local(parent) == "table-header-rows"
        self.drafts += table_drafts(rows, headers, lambda _first, _last: None)

    def _hide(self, element: Any) -> None:
        text = " ".join("".join(element.itertext()).split()) or attribute(element, "string-value")
        if text:
            self.hidden.append(HiddenText(_HIDDEN[local(element)], "content.xml", text))

    def text(self, element: Any) -> str:
        """Visible text of a paragraph: spaces, tabs and breaks resolved, notes left out."""
        parts = [element.text or ""]
        for child in element:
            name = local(child)
            if name == "s":
                parts.append(" " * min(int(attribute(child, "c") or 1), 100))
            elif name in {"tab", "line-break"}:
                parts.append(" ")
            elif name in _HIDDEN:
                self._hide(child)
            elif name == "span" and attribute(child, "style-name") in self._invisible:
                text = "".join(child.itertext())
                self.hidden.append(HiddenText("vanish", "content.xml", text))
            elif name not in _SKIPPED and name != "note":
                joint = " " if name in {"p", "h"} and "".join(parts).strip() else ""
                parts.append(joint + self.text(child))
            parts.append(child.tail or "")
        return "".join(parts)


def _invisible_styles(root: Any) -> frozenset[str]:
    found = set()
    for style in root.iter():
        if local(style) != "style":
            continue
        for properties in style:
            if (
                local(properties) == "text-properties"
                and attribute(properties, "display") == "none"
            ):
                found.add(attribute(style, "name") or "")
    return frozenset(found - {""})


def _facts(package: Package) -> tuple[dict[str, str], list[HiddenText]]:
    root = package.xml("meta.xml")
    facts: dict[str, str] = {}
    hidden: list[HiddenText] = []
    for element in root.iter() if root is not None else ():
        text = (element.text or "").strip()
        name = local(element)
        if text and not len(element):
            hidden.append(HiddenText("metadata", f"meta.xml {name}", text))
            if name in _META:
                facts.setdefault(_META[name], text)
    return facts, hidden
