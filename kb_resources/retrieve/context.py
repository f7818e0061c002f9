"""A passage between its neighbours, and the link that opens it in its document.

Belongs here: passages of one version in reading order. What does not: ranking; texts for a model
(fences, budgets). Neighbours obey the same conditions as the passage itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kb_resources.errors import InputError
from kb_resources.model import Principal
from kb_resources.retrieve.hit import Hit
from kb_resources.retrieve.retriever import Database
from kb_resources.retrieve.section_notes import SectionNotes, section_notes
from kb_resources.retrieve.visible import asked_id, held_audiences, no_passage, readable_scope
from kb_resources.store import reading

MAX_NEIGHBOURS = 50


@dataclass(frozen=True, slots=True)
class PassageContext:
    """A passage and what stands around it in the same version.

    Attributes:
        passage: the one that was asked for.
        before: passages before it, in reading order; fewer at the document's start.
        after: passages after it.
        link: opens the passage in the page of this knowledge base, relative to its address.
        notes: what a model noted on the section around it, where KB_ENRICH is on.
    """

    passage: Hit
    before: tuple[Hit, ...]
    after: tuple[Hit, ...]
    link: str
    notes: SectionNotes | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return {
            "passage": self.passage.to_json(),
            "before": [hit.to_json() for hit in self.before],
            "after": [hit.to_json() for hit in self.after],
            "link": self.link,
            "notes": self.notes and self.notes.to_json(),
        }


def passage_context(
    database: Database,
    passage_id: str,
    *,
    scope: str,
    principal: Principal,
    version: int | None = None,
    before: int = 2,
    after: int = 2,
) -> PassageContext:
    """A passage with its neighbours: of the version named, else of the one that holds now.

    Args:
        database: transactions of the reading role.
        passage_id: stable id.
        scope: scope name.
        principal: who asks.
        version: number of the version, or None.
        before: passages before it, 0 to 50.
        after: passages after it, 0 to 50.

    Raises:
        ScopeRequired: no scope.
        InputError: a number is out of range.
        NotFound: no such scope or passage for this principal.
    """
    name = readable_scope(scope, principal)
    for value in (before, after):
        if not 0 <= value <= MAX_NEIGHBOURS:
            raise InputError(
                f"{value} is not a number of neighbours.",
                next_step=f"Ask for 0 to {MAX_NEIGHBOURS} passages before and after.",
            )
    with database.transaction("app", name) as conn:
        rows = reading.context(
            conn,
            name,
            asked_id(passage_id),
            audiences=held_audiences(principal),
            version=version,
            before=before,
            after=after,
        )
        asked = next((row for row in rows if row["step"] == 0), None)
        notes = section_notes(conn, asked) if asked else None
    around: dict[int, Hit] = {row.pop("step"): Hit.from_row(row) for row in rows}
    if 0 not in around:
        raise no_passage(passage_id, name)
    return PassageContext(
        passage=around[0],
        before=_ordered(around, range(-before, 0)),
        after=_ordered(around, range(1, after + 1)),
        link=around[0].link,
        notes=notes,
    )


def _ordered(around: dict[int, Hit], steps: Sequence[int]) -> tuple[Hit, ...]:
    return tuple(around[step] for step in steps if step in around)
