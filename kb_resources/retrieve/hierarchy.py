"""Hits joined by the section they stand in: each with its headings and the passages around it.

Belongs here: merging hits of one section into one, and reading its siblings. What does not:
ranking, texts for a model (fences, budgets). Siblings obey the conditions of the hit itself, since
they are read as the same principal and of the same version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kb_resources.errors import InputError, NotFound
from kb_resources.model import Principal
from kb_resources.retrieve.context import MAX_NEIGHBOURS, passage_context
from kb_resources.retrieve.hit import Hit
from kb_resources.retrieve.retriever import Database


@dataclass(frozen=True, slots=True)
class Joined:
    """A section that was found.

    Attributes:
        hit: the best-ranked of its hits.
        ancestors: titles from the document's down to the section's own.
        passages: hits and siblings in reading order, each once; the hit alone where it is gone.
        ranks: of all hits that were merged into it, best first.
        gone: whether the passage does not show any more since the search.
    """

    hit: Hit
    ancestors: tuple[str, ...]
    passages: tuple[Hit, ...]
    ranks: tuple[int, ...]
    gone: bool = False

    @property
    def text(self) -> str:
        """Its passages, a blank line between those that do not adjoin."""
        return "\n\n".join(passage.text for passage in self.passages)

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return {
            **self.hit.to_json(),
            "ancestors": list(self.ancestors),
            "passages": [passage.to_json() for passage in self.passages],
            "ranks": list(self.ranks),
            "gone": self.gone,
        }


def hierarchy_join(
    database: Database, hits: Sequence[Hit], *, principal: Principal, siblings: int = 1
) -> tuple[Joined, ...]:
    """Merge hits of the same section, with siblings on both sides of each.

    Args:
        database: transactions of the reading role.
        hits: best first, of one search by the same principal.
        principal: who asks.
        siblings: passages of the same section read before and after each hit, 0 to 50.

    Returns:
        One per section, in the order of their best hits.

    Raises:
        InputError: `siblings` is out of range.
    """
    if not 0 <= siblings <= MAX_NEIGHBOURS:
        raise InputError(
            f"{siblings} is not a number of siblings.",
            next_step=f"Ask for 0 to {MAX_NEIGHBOURS}.",
        )
    sections: dict[tuple[object, ...], list[Hit]] = {}
    for hit in hits:
        place = (hit.scope, hit.document_id, hit.version, hit.heading_path)
        sections.setdefault(place, []).append(hit)
    return tuple(_join(database, found, principal, siblings) for found in sections.values())


def _join(database: Database, found: Sequence[Hit], principal: Principal, siblings: int) -> Joined:
    best = found[0]
    kept: dict[str, Hit] = {hit.passage_id: hit for hit in found}
    gone = False
    for hit in found:
        try:
            around = passage_context(
                database,
                hit.passage_id,
                scope=hit.scope,
                principal=principal,
                version=hit.version,
                before=siblings,
                after=siblings,
            )
        except NotFound:
            gone = True
            continue
        for near in (*around.before, *around.after):
            if near.heading_path == best.heading_path:
                kept.setdefault(near.passage_id, near)
    path = best.heading_path
    return Joined(
        hit=best,
        ancestors=path if path[:1] == (best.title,) else (best.title, *path),
        passages=tuple(sorted(kept.values(), key=lambda one: one.byte_start)),
        ranks=tuple(hit.rank for hit in found),
        gone=gone,
    )
