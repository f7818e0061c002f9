"""Fusion by scores instead of ranks, for callers who want to say how much meaning counts.

Belongs here: normalising the scores of two lists and mixing them. What does not: fusion by rank,
which the statement does. Each list's scores are stretched to 0..1 within the list (Lee, "Analyses
of multiple evidence combination", 1997); a row that a list does not hold has 0 of it and stands
behind the list's last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb_resources.errors import InputError

Row = Mapping[str, Any]
SCORE_KINDS = {"adaptive": "rrf_adaptive", "rrf": "rrf", "weighted": "weighted"}
"""What `Hit.score` is, by fusion."""
_LAST = 10**9
_LEAST = 1e-6
"""What the last row of a list still has of it, so that it stands before rows outside the list."""


def check_weight(weight: float) -> float:
    """The weight of meaning, 0 to 1, or InputError."""
    if not 0.0 <= weight <= 1.0:
        raise InputError(
            f"{weight} is not a weight.", next_step="Give meaning a weight of 0 (words) to 1."
        )
    return weight


def weighted(rows: Sequence[Row], weight: float) -> list[dict[str, Any]]:
    """Rows by `weight * meaning + (1 - weight) * words`, ties by the rank in the heavier list.

    Args:
        rows: of the statement, both lists whole, with `text_score` and `vector_score`.
        weight: of meaning, 0 to 1.

    Returns:
        Rows with `score` 0..1; of weight 1 or 0, those of that list alone.
    """
    words, meaning = (_stretched(rows, name) for name in ("text_score", "vector_score"))
    scored = [
        {**row, "score": weight * near + (1 - weight) * said}
        for row, said, near in zip(rows, words, meaning, strict=True)
    ]
    found = [row for row in scored if row["score"] > 0]
    tie = "vector_rank" if weight >= 0.5 else "text_rank"
    return sorted(found, key=lambda row: (-row["score"], row[tie] or _LAST))


def _stretched(rows: Sequence[Row], name: str) -> list[float]:
    known = [float(row[name]) for row in rows if row[name] is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    span = high - low
    return [
        0.0
        if row[name] is None
        else (_LEAST + (1 - _LEAST) * ((float(row[name]) - low) / span) if span > 0 else 1.0)
        for row in rows
    ]
