"""Groups of equally long inputs under a token budget.

Belongs here: the plan only. What does not: tokenising or running. Padding is never used: the
default model has no mask input, and a padded token costs as much as a real one. Sorting by length
is what sentence-transformers' `encode` does too; exact lengths go one step further.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

TOKEN_BUDGET = 512
"""Most tokens in a batch: larger ones leave the cache and are slower, and a query waits longer."""


def plan_batches(lengths: Sequence[int], budget: int = TOKEN_BUDGET) -> list[list[int]]:
    """Positions grouped by exact length, longest first.

    Args:
        lengths: tokens of each input.
        budget: most tokens in a group; an input longer than it stands alone.

    Returns:
        A partition of `range(len(lengths))`; each group's lengths are equal.
    """
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for position, length in enumerate(lengths):
        by_length[length].append(position)
    batches = []
    for length in sorted(by_length, reverse=True):
        size = max(1, budget // max(1, length))
        positions = by_length[length]
        batches += [positions[at : at + size] for at in range(0, len(positions), size)]
    return batches
