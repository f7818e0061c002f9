"""What a PDF holds and does not show, without reading its pages.

Belongs here: the scan's input for files whose pages somebody else has read. Our own reader collects
the same while it goes (`read.py`).
"""

from __future__ import annotations

from kb_resources.model import HiddenText, Refusal
from kb_resources.parse.pdf.extras import document_extras, page_extras
from kb_resources.parse.pdf.hidden import as_hidden_text, hidden_runs
from kb_resources.parse.pdf.pdfium import open_document
from kb_resources.parse.pdf.seen import DrawingBudget

FACTS = {
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "Creator": "creator",
    "Producer": "producer",
    "CreationDate": "created",
    "ModDate": "modified",
}
"""Entries of the document information dictionary and the names their facts go by."""


def unseen_of(data: bytes) -> tuple[tuple[HiddenText, ...], dict[str, str], str] | Refusal:
    """Hidden texts, facts and the stated title of a PDF, or why it does not open."""
    document = open_document(data)
    if isinstance(document, Refusal):
        return document
    try:
        found = document_extras(document, data)
        budget = DrawingBudget()
        for number in range(1, document.page_count + 1):
            with document.page(number) as page:
                if page is not None:
                    found += as_hidden_text(hidden_runs(page, budget), number)
                    found += page_extras(page)
        info = document.metadata()
    finally:
        document.close()
    facts = {fact: info[key] for key, fact in FACTS.items() if info.get(key)}
    return tuple(found), facts, info.get("Title", "")
