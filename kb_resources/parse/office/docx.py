"""Word files to a Reading.

Belongs here: the order of the steps around docling's Word reader, and the title.
docling's reader: https://docling-project.github.io/docling/usage/supported_formats/.
"""

from __future__ import annotations

from kb_resources.model import HiddenText, Refusal, RemovedLine
from kb_resources.parse.clean import one_line
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.office.docling_backend import convert
from kb_resources.parse.office.items import ItemWalker
from kb_resources.parse.office.package import open_package
from kb_resources.parse.office.properties import comments, properties
from kb_resources.parse.office.wordnotes import mark_references, note_texts, place_notes
from kb_resources.parse.office.wordprep import make_plain, margin_texts
from kb_resources.parse.reading import Reading

_EMPTY_TITLES = frozenset(("", "powerpoint presentation", "word document", "untitled", "document1"))


def read_docx(data: bytes) -> Reading | Refusal:
    """Read a Word file.

    Returns:
        Reading without pages (Word files have none until they are laid out), or a Refusal
        (`corrupt`).
    """
    package = open_package(data, "Word")
    if isinstance(package, Refusal):
        return package
    facts, hidden = properties(package)
    hidden += make_plain(package)
    hidden += comments(package, "word/")
    mark_references(package)
    margins = margin_texts(package)
    hidden += [HiddenText("header_footer", "header or footer", text) for text in margins]
    document = convert(package.to_bytes(), "docx")
    if isinstance(document, Refusal):
        return document
    drafts = place_notes(ItemWalker(document).walk().drafts, note_texts(package))
    return Reading(
        drafts=tuple(drafts),
        parser="docx",
        title=title_of(drafts, facts.get("title", "")),
        hidden=tuple(hidden),
        removed=tuple(RemovedLine(None, one_line(text), "running_head") for text in margins),
        metadata=facts,
    )


def title_of(drafts: list[DraftBlock], stated: str) -> str:
    """The first heading where it opens the document, else the stated title."""
    first = drafts[0] if drafts else None
    if first is not None and first.kind == "heading":
        return first.text
    return "" if stated.strip().lower() in _EMPTY_TITLES else stated
