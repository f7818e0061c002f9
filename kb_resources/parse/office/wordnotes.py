"""Footnotes and endnotes of Word files, put behind the paragraph that refers to them.

Belongs here: references replaced by a mark before docling reads the file, marks resolved after.
docling keeps notes apart without their place; here a note stays in its section (ECMA-376 part 1,
17.11). The mark is a pair of private-use characters around an id, which docling passes through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.office.package import Package, attribute, local
from kb_resources.parse.office.properties import joined_text

_PARTS = {"footnote": "word/footnotes.xml", "endnote": "word/endnotes.xml"}
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
_MARK = re.compile(rf"{_OPEN}(\w+){_CLOSE}")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def note_texts(package: Package) -> dict[str, str]:
    """Note texts by mark id ("footnote2")."""
    notes: dict[str, str] = {}
    for kind, part in _PARTS.items():
        root = package.xml(part)
        for note in root if root is not None else ():
            if local(note) == kind and attribute(note, "type") in {None, "normal"}:
                notes[f"{kind}{attribute(note, 'id')}"] = joined_text(note)
    return notes


def mark_references(package: Package) -> None:
    """Replace each note reference in the document by its mark."""
    root = package.xml("word/document.xml")
    if root is None:
        return
    references = [e for e in root.iter() if local(e) in {"footnoteReference", "endnoteReference"}]
    for reference in references:
        kind = local(reference).removesuffix("Reference")
        _to_text(reference, f"{_OPEN}{kind}{attribute(reference, 'id')}{_CLOSE}")
    if references:
        package.put_xml("word/document.xml", root)


def place_notes(drafts: Sequence[DraftBlock], notes: Mapping[str, str]) -> list[DraftBlock]:
    """Drafts without marks, each followed by the notes it refers to; every note once."""
    left = dict(notes)
    placed: list[DraftBlock] = []
    for draft in drafts:
        ids: list[str] = []
        clean = replace(
            draft,
            text=_without_marks(draft.text, ids),
            rows=tuple(tuple(_without_marks(c, ids) for c in row) for row in draft.rows),
        )
        placed.append(clean)
        placed += _notes(ids, left)
    return placed + list(_notes(list(left), left))


def _notes(ids: list[str], left: dict[str, str]) -> Iterator[DraftBlock]:
    for note in ids:
        if text := left.pop(note, "").strip():
            yield DraftBlock("footnote", text)


def _without_marks(text: str, ids: list[str]) -> str:
    ids += _MARK.findall(text)
    return _MARK.sub("", text)


def _to_text(element: Any, text: str) -> None:
    for key in list(element.attrib):
        del element.attrib[key]
    element.tag = element.tag.rpartition("}")[0] + "}t"
    element.text = text
    element.set(_SPACE, "preserve")
