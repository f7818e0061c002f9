"""Near-duplicates among hits: the best-ranked stays, the others are counted and named.

Belongs here: telling texts that say the same. What does not: ranking. Similarity is the Jaccard
index of three-word shingles (Broder, "On the resemblance and containment of documents", 1997).
Texts whose numbers differ are never the same: "30 days" and "14 days" may be all that matters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kb_resources.retrieve.hit import Hit

SIMILAR = 0.8
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\w*\d\w*")
_SHINGLE = 3


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Hits without their near-duplicates.

    Attributes:
        hits: in their order, each the best-ranked of its kind.
        others: per kept hit, what it stands for beside itself.
        folded: how many hits were left out.
    """

    hits: tuple[Hit, ...]
    others: tuple[tuple[Hit, ...], ...]
    folded: int


def collapse(hits: Sequence[Hit], *, similar: float = SIMILAR) -> Collapsed:
    """Fold near-duplicates into the best-ranked of them.

    Args:
        hits: best first.
        similar: Jaccard index from which two texts count as one, above 0 up to 1.
    """
    kept: list[tuple[Hit, list[Hit], _Print]] = []
    for hit in hits:
        made = _Print.of(hit.text)
        same = next((others for _, others, other in kept if other.is_near(made, similar)), None)
        if same is None:
            kept.append((hit, [], made))
        else:
            same.append(hit)
    others = tuple(tuple(others) for _, others, _ in kept)
    return Collapsed(tuple(hit for hit, _, _ in kept), others, sum(map(len, others)))


@dataclass(frozen=True, slots=True)
class _Print:
    """What two texts are compared by."""

    shingles: frozenset[tuple[str, ...]]
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Print:
        words = _WORD.findall(text.casefold())
        last = max(1, len(words) - _SHINGLE + 1)
        return cls(
            frozenset(tuple(words[i : i + _SHINGLE]) for i in range(last)),
            tuple(sorted(word for word in words if _NUMBER.fullmatch(word))),
        )

    def is_near(self, other: _Print, similar: float) -> bool:
        if self.numbers != other.numbers:
            return False
        shared = len(self.shingles & other.shingles)
        return shared >= similar * len(self.shingles | other.shingles)
