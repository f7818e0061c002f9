"""XML without a format of its own: texts as paragraphs, elements named like titles as headings.

Belongs here: application/xml that is neither HTML nor a package. DTDs are never loaded and entities
never expanded (https://owasp.org/www-community/vulnerabilities/XML_External_Entity_(XXE)_Processing).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.office.package import local, parse_xml
from kb_resources.parse.reading import Reading

_HEADINGS = frozenset(("title", "heading", "head", "subject", "name", "label"))
_MAX_DEPTH = 200


def read_xml(data: bytes) -> Reading | Refusal:
    """Read generic XML.

    Returns:
        Reading, or a Refusal (`corrupt`) for malformed XML, entity declarations or absurd depth.
    """
    if b"<!entity" in data.lower().replace(b"\x00", b""):
        return Refusal(
            DocumentState.CORRUPT, "The XML declares entities, which are not expanded here."
        )
    root = parse_xml(data)
    if root is None:
        return Refusal(DocumentState.CORRUPT, "The XML is malformed; check it with a validator.")
    drafts: list[DraftBlock] = []
    hidden: list[HiddenText] = []
    for element, depth in _walk(root):
        if depth > _MAX_DEPTH:
            return Refusal(
                DocumentState.CORRUPT, f"The XML is nested more than {_MAX_DEPTH} levels deep."
            )
        if not local(element):
            if (element.text or "").strip():
                hidden.append(HiddenText("xml_comment", "comment", element.text))
            continue
        hidden += [
            HiddenText("attribute", f"attribute {key} of <{local(element)}>", value)
            for key, value in element.attrib.items()
            if " " in value.strip()
        ]
        drafts += _texts(element, depth)
    return Reading(tuple(drafts), "xml", hidden=tuple(hidden))


def _walk(root: Any) -> Iterator[tuple[Any, int]]:
    stack = [(root, 1)]
    while stack:
        element, depth = stack.pop()
        yield element, depth
        stack.extend((child, depth + 1) for child in reversed(element))


def _texts(element: Any, depth: int) -> Iterator[DraftBlock]:
    if text := (element.text or "").strip():
        if local(element).lower() in _HEADINGS:
            yield DraftBlock("heading", text, level=min(max(depth - 1, 1), 6))
        else:
            yield DraftBlock("paragraph", text)
    parent = element.getparent()
    if parent is not None and (tail := (element.tail or "").strip()):
        yield DraftBlock("paragraph", tail)
