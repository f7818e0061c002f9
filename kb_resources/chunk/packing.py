"""Filling chunks: which neighbours share one, decided on sizes alone.

Belongs here: arithmetic on token counts. What may be neighbours is decided by `layout` and
`units`. First fit in order, as requirement O-02 has it; content-defined breaks for long runs are
the idea of Muthitacharoen, Chen and Mazieres, "A Low-bandwidth Network File System", 2001.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterable, Sequence
from itertools import accumulate
from typing import Final

_ANCHOR_EVERY: Final = 16
_LONG_RUN_BUDGETS: Final = 8


def pack(sizes: Sequence[int], budget: int, preferred: Container[int] = ()) -> list[int]:
    """Group consecutive items so that each group keeps the budget.

    Groups are filled in order. A group that is at least a quarter full ends before a preferred
    item. A last group under a quarter shares evenly with the one before it.

    Args:
        sizes: tokens of each item; an item above the budget gets a group of its own.
        budget: tokens of a group.
        preferred: indexes of items that rather begin a group.

    Returns:
        Index of the first item of each group; empty for no items.
    """
    starts: list[int] = []
    size = 0
    for index, item in enumerate(sizes):
        full = size + item > budget or (4 * size >= budget and index in preferred)
        if full or not starts:
            starts.append(index)
            size = 0
        size += item
    if len(starts) > 1 and 4 * size < budget:
        starts[-1] = _even(sizes, starts[-2], starts[-1], budget)
    return starts


def _even(sizes: Sequence[int], first: int, second: int, budget: int) -> int:
    """Where the two last groups part most evenly, without breaking the budget."""
    tail = sizes[first:]
    total = sum(tail)
    best, gap = second, total
    for index, left in enumerate(accumulate(tail[:-1]), start=first + 1):
        if left <= budget and total - left <= budget and abs(total - 2 * left) < gap:
            best, gap = index, abs(total - 2 * left)
    return best


def anchors(
    body: str, spans: Iterable[tuple[int, int]], sizes: Sequence[int], budget: int
) -> set[int]:
    """Items that begin a group for what they say, in runs of more than eight groups.

    About one in sixteen. However much is inserted far above, cuts agree again after the next one;
    without them, one new paragraph could move every cut below it and all would be embedded anew.
    """
    if sum(sizes) <= _LONG_RUN_BUDGETS * budget:
        return set()
    return {
        index
        for index, (start, end) in enumerate(spans)
        if zlib.crc32(body[start:end].encode()) % _ANCHOR_EVERY == 0
    }
