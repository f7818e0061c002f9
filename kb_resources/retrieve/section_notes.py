"""What a model noted on the sections around a passage, for those who read it.

Belongs here: reading the notes in the transaction of the passage they stand beside. What does not:
making them (`stages.enrich`), or quoting: they are a model's words, which no answer may cite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kb_resources.store import model_calls
from kb_resources.store.documents import Conn


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A name that stands in the section; `score` is the model's own, 0..1."""

    text: str
    type: str
    score: float


@dataclass(frozen=True, slots=True)
class SectionNotes:
    """Notes on the innermost section around a passage that has any.

    Attributes:
        summary: of that section.
        entities: names in it.
        keywords: words that somebody would look for.
        parent_summaries: of the sections around it, the document's first.
        made_by: model and prompt.
    """

    summary: str
    entities: tuple[NamedEntity, ...]
    keywords: tuple[str, ...]
    parent_summaries: tuple[str, ...]
    made_by: str

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return asdict(self)


def section_notes(conn: Conn, place: Mapping[str, Any]) -> SectionNotes | None:
    """The notes around a passage, None where there are none.

    Args:
        conn: inside a transaction of the reading role.
        place: scope, document_id, version, byte_start, byte_end of a passage that shows.
    """
    names = ("scope", "document_id", "version", "byte_start", "byte_end")
    found = model_calls.notes_around(conn, *(place[name] for name in names))
    if not found:
        return None
    innermost = found[-1]["notes"]
    return SectionNotes(
        summary=innermost["summary"],
        entities=tuple(NamedEntity(**entity) for entity in innermost["entities"]),
        keywords=tuple(innermost["keywords"]),
        parent_summaries=tuple(row["notes"]["summary"] for row in found[:-1]),
        made_by=found[-1]["enricher"],
    )
