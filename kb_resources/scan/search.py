"""The search among a block's words: rules around anchors, clusters, dense disguises.

Belongs here: which words meet within which distance. Linear in the number of words, with windows of
fixed size. Does not belong here: what the words are (`lexicon`) or where they stand (`matcher`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kb_resources.model import Severity
from kb_resources.scan.disguise import LEAST_WORDS
from kb_resources.scan.lexicon import BARRIER
from kb_resources.scan.packs import Cluster, Packs, Rule

# Disguised words this far apart still make one stretch.
_DENSE_GAP = 12
# In a crowd of words only every so manieth window is looked at.
_STRIDE = 4
# Anchors followed up in one block; prose has some two hundred.
MAX_ANCHORS = 3_000
# What a block with more of them is called, so that nothing can hide in a crowd.
CROWDED = Cluster(
    id="crowded",
    severity=Severity.MEDIUM,
    kinds=(),
    at_least=0,
    words=0,
    within=0,
    source="own",
    explanation="So many words that rules start from that not all could be followed up.",
)


class Hits(NamedTuple):
    """The tokens of a block that are of some kind, in order, as parallel lists.

    Attributes:
        at: the token's number in the block.
        bits: its kinds, one bit each.
        length: how many tokens those span that span several, by their index in the lists.
    """

    at: list[int]
    bits: list[int]
    length: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: Rule
    needs: tuple[tuple[int, int, int], ...]
    unless: int


# A hit near an anchor: kinds, offset in tokens, whether in the anchor's sentence, index.
_Near = tuple[int, int, bool, int]


class Search:
    """The rules of some packs in the form that the search works with."""

    def __init__(self, packs: Packs, bit_of: Mapping[str, int]) -> None:
        def bits(kinds: frozenset[str]) -> int:
            return sum(bit_of[kind] for kind in kinds)

        self._by_anchor: dict[int, list[_Compiled]] = {}
        for rule in packs.rules:
            needs = tuple((bits(n.kinds), -n.before, n.after) for n in rule.needs)
            compiled = _Compiled(rule, needs, bits(rule.unless))
            for kind in rule.anchor:
                self._by_anchor.setdefault(bit_of[kind], []).append(compiled)
        self._anchors = sum(self._by_anchor)
        self._reach = max(rule.window for rule in packs.rules)
        self._clusters = [
            (cluster, [bit_of[kind] for kind in cluster.kinds]) for cluster in packs.clusters
        ]

    def rules(
        self, hits: Hits, tokens: Sequence[str], done: Container[str]
    ) -> Iterator[tuple[Rule | Cluster, list[int]]]:
        """Rules and clusters that hold, each with the indexes of the hits that make it.

        Args:
            hits: of the block.
            tokens: of the block.
            done: ids of rules that need not be looked for any more; may grow meanwhile.
        """
        present = 0
        for bits in hits.bits:
            present |= bits
        anchors = self._live_anchors(present, done)
        live = [index for index, bits in enumerate(hits.bits) if bits & anchors]
        for index in live[:MAX_ANCHORS]:
            yield from self._around(hits, index, done)
        if len(live) > MAX_ANCHORS and CROWDED.id not in done:
            yield CROWDED, [live[0], live[-1]]
        for cluster, kinds in self._clusters:
            here = sum(1 for kind in kinds if present & kind)
            if here >= cluster.at_least and cluster.id not in done:
                for found in _clusters(cluster, kinds, hits, tokens):
                    yield cluster, found
                    if cluster.id in done:
                        break

    def dense(self, channel: str, positions: Sequence[int]) -> Iterator[tuple[int, int]]:
        """First and last of stretches with enough words in a disguise."""
        least = LEAST_WORDS[channel]
        start = 0
        for index in range(1, len(positions) + 1):
            if index == len(positions) or positions[index] - positions[index - 1] > _DENSE_GAP:
                if index - start >= least:
                    yield positions[start], positions[index - 1]
                start = index

    def _live_anchors(self, present: int, done: Container[str]) -> int:
        """Anchors of those rules whose every need is met somewhere in the block."""
        live = 0
        for bit, rules in self._by_anchor.items():
            if bit & present and any(
                compiled.rule.id not in done and _can_hold(compiled, present) for compiled in rules
            ):
                live |= bit
        return live

    def _around(
        self, hits: Hits, anchor: int, done: Container[str]
    ) -> Iterator[tuple[Rule, list[int]]]:
        near = self._near(hits, anchor)
        everything = 0
        for bits, *_ in near:
            everything |= bits
        possible = [
            compiled
            for bit, rules in self._by_anchor.items()
            if hits.bits[anchor] & bit
            for compiled in rules
            if _can_hold(compiled, everything) and compiled.rule.id not in done
        ]
        if possible:
            near.sort(key=_distance)
        for compiled in possible:
            found = _assign(compiled, anchor, near)
            if found:
                yield compiled.rule, found

    def _near(self, hits: Hits, anchor: int) -> list[_Near]:
        """Hits around an anchor, those before it first."""
        here = hits.at[anchor]
        around: list[_Near] = []
        for step in (-1, 1):
            same, index = True, anchor + step
            while 0 <= index < len(hits.at):
                offset = hits.at[index] - here
                if abs(offset) > self._reach:
                    break
                if hits.bits[index] == BARRIER:
                    same = False
                else:
                    around.append((hits.bits[index], offset, same, index))
                index += step
        return around


def _can_hold(compiled: _Compiled, present: int) -> bool:
    """Whether there is a word for every need at all."""
    for need, _, _ in compiled.needs:  # noqa: SIM110 - a generator costs more than the question
        if not need & present:
            return False
    return True


def _distance(near: _Near) -> int:
    return abs(near[1])


def _assign(compiled: _Compiled, anchor: int, near: Sequence[_Near]) -> list[int] | None:
    """A hit of its own for the anchor and every need, the nearest that will do, or None."""
    rule = compiled.rule
    reach = [hit for hit in near if abs(hit[1]) <= rule.window and (hit[2] or not rule.sentence)]
    if compiled.unless and any(hit[0] & compiled.unless for hit in reach):
        return None
    found = _meet(compiled.needs, reach, ())
    return None if found is None else [anchor, *found]


def _meet(
    needs: Sequence[tuple[int, int, int]], reach: Sequence[_Near], taken: tuple[int, ...]
) -> list[int] | None:
    """A hit of its own for every need, the nearest first, or None; at most four needs deep."""
    if not needs:
        return []
    need, least, most = needs[0]
    for bits, offset, _, index in reach:
        if bits & need and least <= offset <= most and index not in taken:
            rest = _meet(needs[1:], reach, (*taken, index))
            if rest is not None:
                return [index, *rest]
    return None


def _clusters(
    cluster: Cluster, kinds: Sequence[int], hits: Hits, tokens: Sequence[str]
) -> Iterator[list[int]]:
    """Stretches in which enough kinds and enough different words of them meet."""
    every = sum(kinds)
    counted = [index for index, bits in enumerate(hits.bits) if bits & every]
    first = 0
    for last, index in enumerate(counted):
        while hits.at[counted[first]] < hits.at[index] - cluster.within:
            first += 1
        # Most windows hold too few words to look closer.
        crowd = last - first + 1
        if crowd < cluster.words or (crowd > 2 * cluster.words and last % _STRIDE):
            continue
        window = counted[first : last + 1]
        present = 0
        for one in window:
            present |= hits.bits[one]
        if (
            sum(1 for kind in kinds if present & kind) >= cluster.at_least
            and len({tokens[hits.at[one]] for one in window}) >= cluster.words
        ):
            yield window
            first = last + 1
            if first == len(counted):
                return
