"""A difference that people can read: lines first, then words inside the lines that changed.

Lines are matched by patience (unique common lines as anchors, see
https://bramcohen.livejournal.com/73318.html), because bodies are full of blank and repeated lines
that mislead other matchings. Belongs here: the matching. What does not: presenting it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Op = Literal["equal", "insert", "delete"]

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_SMALL = 250_000
"""Pairs of lines or words compared one by one at most; what is larger counts as replaced."""
_ALIKE = 0.35
"""Share of words in common from which a changed passage is shown word by word."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """A stretch of text that both bodies have (`equal`) or only one.

    Attributes:
        op: `insert` stands in the new body only, `delete` in the old one only.
        text: the stretch, verbatim.
    """

    op: Op
    text: str


def diff(old: str, new: str) -> tuple[Hunk, ...]:
    """Hunks in reading order.

    All `equal` and `delete` texts joined are `old`, all `equal` and `insert` texts joined `new`;
    neighbours differ in `op`, and in a change the deletion comes first.
    """
    a, b = old.splitlines(keepends=True), new.splitlines(keepends=True)
    hunks: list[Hunk] = []
    for removed, added, same in _aligned(a, b):
        before, after = "".join(removed), "".join(added)
        hunks += _words(before, after) if before and after else _replaced(before, after)
        hunks.append(Hunk("equal", "".join(same)))
    return tuple(_joined(hunks))


def _words(before: str, after: str) -> list[Hunk]:
    a, b = _WORD.findall(before), _WORD.findall(after)
    common = sum((Counter(filter(_is_word, a)) & Counter(filter(_is_word, b))).values())
    if common < _ALIKE * min(sum(map(_is_word, a)), sum(map(_is_word, b))):
        return _replaced(before, after)
    hunks: list[Hunk] = []
    removed = added = between = ""
    for only_a, only_b, same in _aligned(a, b):
        if only_a or only_b:
            # A space or comma between two changed words is part of the change.
            removed, added = removed + between, added + between
            removed, added, between = removed + "".join(only_a), added + "".join(only_b), ""
        between += "".join(same)
        if not (removed or added) or any(map(_is_word, same)) or "\n" in between:
            hunks += [*_replaced(removed, added), Hunk("equal", between)]
            removed = added = between = ""
    return [*hunks, *_replaced(removed, added), Hunk("equal", between)]


def _is_word(token: str) -> bool:
    return token[0].isalnum()


def _replaced(before: str, after: str) -> list[Hunk]:
    changed: list[Hunk] = []
    if before:
        changed.append(Hunk("delete", before))
    if after:
        changed.append(Hunk("insert", after))
    return changed


def _joined(hunks: Sequence[Hunk]) -> Iterator[Hunk]:
    """Neighbours of one kind become one, deletions and insertions of one change two."""
    removed = added = same = ""
    for hunk in hunks:
        if not hunk.text:
            continue
        if hunk.op == "equal":
            yield from _replaced(removed, added)
            removed = added = ""
            same += hunk.text
        else:
            if same:
                yield Hunk("equal", same)
                same = ""
            removed += hunk.text if hunk.op == "delete" else ""
            added += hunk.text if hunk.op == "insert" else ""
    yield from _replaced(removed, added)
    if same:
        yield Hunk("equal", same)


_Step = tuple[Sequence[str], Sequence[str], Sequence[str]]


def _aligned(a: Sequence[str], b: Sequence[str]) -> Iterator[_Step]:
    """Steps of (only in a, only in b, in both after that), which together give a and b."""
    done_a = done_b = 0
    for at_a, at_b, size in _matches(a, b):
        yield a[done_a:at_a], b[done_b:at_b], a[at_a : at_a + size]
        done_a, done_b = at_a + size, at_b + size
    yield a[done_a:], b[done_b:], ()


def _matches(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Matching blocks (start in a, start in b, length) in order."""
    todo = [(0, len(a), 0, len(b))]
    while todo:
        a0, a1, b0, b1 = todo.pop()
        head = _common(a, b, a0, b0, min(a1 - a0, b1 - b0), 1)
        if head:
            yield a0, b0, head
            a0, b0 = a0 + head, b0 + head
        tail = _common(a, b, a1 - 1, b1 - 1, min(a1 - a0, b1 - b0), -1)
        if tail:
            # Comes last: as a range that consists of its own head.
            todo.append((a1 - tail, a1, b1 - tail, b1))
            a1, b1 = a1 - tail, b1 - tail
        if a0 == a1 or b0 == b1:
            continue
        anchors = _unique_common(a, b, a0, a1, b0, b1)
        if anchors:
            starts = [(a0, b0), *anchors]
            ends = [*anchors, (a1, b1)]
            todo += [
                (s[0], e[0], s[1], e[1]) for s, e in reversed(list(zip(starts, ends, strict=True)))
            ]
        elif (a1 - a0) * (b1 - b0) <= _SMALL:
            matcher = SequenceMatcher(None, a[a0:a1], b[b0:b1], autojunk=False)
            for block in matcher.get_matching_blocks():
                if block.size:
                    yield a0 + block.a, b0 + block.b, block.size


def _common(a: Sequence[str], b: Sequence[str], i: int, j: int, limit: int, step: int) -> int:
    size = 0
    while size < limit and a[i + size * step] == b[j + size * step]:
        size += 1
    return size


def _unique_common(
    a: Sequence[str], b: Sequence[str], a0: int, a1: int, b0: int, b1: int
) -> list[tuple[int, int]]:
    """Places of items that stand once in each range, as many as rise in both."""
    once_a, once_b = Counter(a[a0:a1]), Counter(b[b0:b1])
    places = {b[j]: j for j in range(b0, b1) if once_b[b[j]] == 1}
    pairs = [(i, places[a[i]]) for i in range(a0, a1) if once_a[a[i]] == 1 and a[i] in places]
    # Longest rising chain by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(j)
            piles.append(index)
        else:
            tops[pile], piles[pile] = j, index
    chain = []
    index = piles[-1] if piles else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]
