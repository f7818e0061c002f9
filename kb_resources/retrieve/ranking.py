"""The rows of a search: one statement, or two where passages with every word come first.

Belongs here: which statements are run, what is fused outside them, what of a search was asked
otherwise than by default. What does not: ranking by rank, which the statement does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from psycopg import Connection

from kb_resources.retrieve import weighing
from kb_resources.retrieve.asking import MEANING_WEIGHT
from kb_resources.store import search as statements
from kb_resources.store.search import SearchQuery

WORDS = ("any", "all", "all_first")
"""How many of its words a passage must hold; the default by `bench/search.py --words`."""
_DEFAULTS = {
    "words": "any",
    "fusion": "adaptive",
    "meaning_weight": MEANING_WEIGHT,
    "min_score": None,
}
_IDENTITY = ("scope", "document_id", "version", "passage_id")


def ranked(
    conn: Connection[Any], asked: SearchQuery, *, words: str, weight: float | None
) -> list[dict[str, Any]]:
    """Ranked rows, best first.

    Args:
        conn: a transaction of the reading role.
        asked: the search; its `words` are demanded.
        words: `any` does not demand them; `all` does; `all_first` ranks passages that hold them
            all before others.
        weight: of meaning, where scores are to be mixed instead of ranks; else None.

    Returns:
        At most `asked.k` rows, or with a weight the whole of both lists. `score` falls within
        those that hold every word and within the others, not from these to those.
    """

    def run(query: SearchQuery) -> list[dict[str, Any]]:
        rows = statements.run(conn, query)
        return rows if weight is None else weighing.weighted(rows, weight)

    if words == "any" or not asked.words:
        return run(replace(asked, words=()))
    first = run(asked)
    if words == "all" or len(first) >= asked.k:
        return first
    seen = {_identity(row) for row in first}
    others = [row for row in run(replace(asked, words=())) if _identity(row) not in seen]
    return [*first, *others][: asked.k]


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _IDENTITY)


def options(
    words: str, fusion: str, meaning_weight: float, min_score: float | None
) -> dict[str, Any] | None:
    """What was asked otherwise than by default, for the log; None where nothing was."""
    given = (words, fusion, meaning_weight, min_score)
    found = zip(_DEFAULTS.items(), given, strict=True)
    return {name: value for (name, usual), value in found if value != usual} or None
