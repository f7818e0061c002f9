"""A `DoclingDocument` of a PDF or a picture to a Reading, hidden text from the file itself.

Belongs here: docling's items as drafts with page and box, and coverage. docling drops what a reader
does not see, so that is read from the bytes by `pdf`, whoever read the pages.
https://docling-project.github.io/docling/concepts/docling_document/
"""

from __future__ import annotations

from typing import Any

from kb_resources.model import Coverage, DocumentState, HiddenText, Refusal
from kb_resources.parse.office.items import ItemWalker
from kb_resources.parse.reading import Reading


def read_docling_json(document_json: bytes, data: bytes, media_type: str) -> Reading | Refusal:
    """What a docling-serve made of a file, as a Reading.

    Args:
        document_json: its answer.
        data: the file itself.
        media_type: of the file.

    Returns:
        A Reading, or a Refusal (`failed`) for JSON that is no docling document.
    """
    from docling_core.types.doc.document import DoclingDocument
    from pydantic import ValidationError

    try:
        document = DoclingDocument.model_validate_json(document_json)
    except (ValidationError, ValueError, RecursionError) as error:
        return Refusal(
            DocumentState.FAILED,
            "The answer of docling-serve is no docling document "
            f"({type(error).__name__}); check its version.",
        )
    if not document.pages:
        return Refusal(
            DocumentState.FAILED, "The answer of docling-serve holds no page; check its version."
        )
    return reading_of(document, data, media_type)


def reading_of(document: Any, data: bytes, media_type: str) -> Reading | Refusal:
    """A docling document as a Reading.

    Args:
        document: a `DoclingDocument`.
        data: the file it was made of.
        media_type: of the file.
    """
    from kb_resources.parse.pdf.unseen import unseen_of

    try:
        walked = ItemWalker(document, boxes=True).walk()
    except (KeyError, IndexError, AttributeError, ValueError, TypeError) as error:
        return Refusal(
            DocumentState.FAILED,
            f"The docling document contradicts itself ({type(error).__name__}).",
        )
    hidden: tuple[HiddenText, ...] = ()
    facts: dict[str, str] = {}
    title = ""
    if media_type == "application/pdf":
        found = unseen_of(data)
        if isinstance(found, Refusal):
            return found
        hidden, facts, title = found
    with_text = {draft.page for draft in walked.drafts if draft.page is not None}
    blank = sorted(set(document.pages) - with_text)
    pictured = {prov.page_no for picture in document.pictures for prov in picture.prov}
    aside = [
        HiddenText(f"docling_{layer}", f"page {page}" if page else "document", text)
        for layer, text, page in walked.aside
        if layer != "furniture"
    ]
    return Reading(
        drafts=tuple(sorted(walked.drafts, key=lambda draft: draft.page or 0)),
        parser="docling",
        title=title,
        hidden=(*hidden, *aside),
        coverage=Coverage(
            pages=len(document.pages),
            pages_with_text=len(with_text),
            pages_needing_ocr=tuple(page for page in blank if page in pictured),
        ),
        removed=walked.removed(),
        metadata=facts,
    )
