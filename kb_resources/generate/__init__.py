"""What a language model is asked for while documents are taken in: a better body, and notes.

Belongs here: the words of the requests, what of a reply counts, the test of faithfulness. What does
not: HTTP (`answer.endpoint`), what may be sent (`answer.disclosure`), rows (`stages`). One package
for both stages, because they share all but their words: a model, a fenced request, a judged reply.
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand

if TYPE_CHECKING:
    from kb_resources.generate.ask import Answer, Model, Request, Said
    from kb_resources.generate.convert import CONVERT_VERSION, Converter, unfenced
    from kb_resources.generate.faithful import Faithfulness, faithfulness
    from kb_resources.generate.notes import (
        ENRICH_VERSION,
        THRESHOLD_CHARS,
        Enricher,
        Entity,
        Notes,
        notes_request,
        read_notes,
    )
    from kb_resources.generate.section import Section, sections
else:
    __getattr__ = on_demand(
        __name__,
        {
            "ask": ("Answer", "Model", "Request", "Said"),
            "convert": ("CONVERT_VERSION", "Converter", "unfenced"),
            "faithful": ("Faithfulness", "faithfulness"),
            "notes": (
                "ENRICH_VERSION",
                "THRESHOLD_CHARS",
                "Enricher",
                "Entity",
                "Notes",
                "notes_request",
                "read_notes",
            ),
            "section": ("Section", "sections"),
        },
    )

__all__ = [
    "CONVERT_VERSION",
    "ENRICH_VERSION",
    "THRESHOLD_CHARS",
    "Answer",
    "Converter",
    "Enricher",
    "Entity",
    "Faithfulness",
    "Model",
    "Notes",
    "Request",
    "Said",
    "Section",
    "faithfulness",
    "notes_request",
    "read_notes",
    "sections",
    "unfenced",
]
