"""Overlap: how far a chunk reaches back into the one before it. Off by default.

Belongs here: choosing word starts by position, so that repeated words are never mistaken for each
other. Whether an overlap helps is for evaluation to show; Chroma's found that it costs precision,
https://research.trychroma.com/evaluating-chunking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kb_resources.chunk.counting import TokenCounter, count_tokens
from kb_resources.chunk.drafts import Draft

_WORD: Final = re.compile(r"\S++\s*+")
_CHARS_PER_TOKEN: Final = 16


def with_overlap(
    body: str, drafts: Sequence[Draft], tokens: int, counter: TokenCounter
) -> list[Draft]:
    """Drafts that begin up to `tokens` tokens earlier, at a word, within the draft before.

    Args:
        body: what the drafts point into.
        drafts: in body order, disjoint.
        tokens: most tokens to repeat.
        counter: asked once.

    Returns:
        The same drafts; the first of each run and pieces of cut tables unchanged.
    """
    tails = [_tail(body, before, tokens) for before in drafts[:-1]]
    words = [body[a:b] for tail in tails for a, b in tail]
    counts = iter(count_tokens(counter, words))
    result = list(drafts[:1])
    for (before, draft), tail in zip(pairwise(drafts), tails, strict=True):
        sizes = [next(counts) for _ in tail]
        start, left = before.end, tokens
        for (word_start, _), size in zip(reversed(tail), reversed(sizes), strict=True):
            if size > left:
                break
            start, left = word_start, left - size
        reaches = before.run == draft.run and start < before.end and not draft.rest
        result.append(draft._replace(overlap=draft.start - start) if reaches else draft)
    return result


def _tail(body: str, draft: Draft, words: int) -> list[tuple[int, int]]:
    """Spans of the draft's last words, at most so many; never a part of a word."""
    floor = max(draft.start, draft.end - words * _CHARS_PER_TOKEN)
    if floor > draft.start and not body[floor - 1].isspace():
        while floor < draft.end and not body[floor].isspace():
            floor += 1
    return [m.span() for m in _WORD.finditer(body, floor, draft.end)][-words:]
