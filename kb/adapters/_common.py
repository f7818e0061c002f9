"""What the adapters share: how a search is asked for, and what of a hit goes with its text.

Belongs here: names and values without any framework. What does not: scores, which say nothing
across questions; order and `rank` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kb_resources.retrieve import Hit, SearchResult


class Searches(Protocol):
    """Anything that searches like `KnowledgeBase`."""

    def search(
        self,
        query: str,
        *,
        scope: str,
        audiences: Sequence[str] = (),
        k: int = 8,
        mode: str = "hybrid",
        as_of: datetime | None = None,
        words: str = "any",
    ) -> SearchResult:
        """Ranked passages of one scope."""
        ...


def metadata_of(hit: Hit, correlation_id: str) -> dict[str, Any]:
    """What a citation needs, in plain JSON."""
    shown = hit.to_json()
    del shown["text"]
    return {**shown, "deep_link": hit.link, "correlation_id": correlation_id}
