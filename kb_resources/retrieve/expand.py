"""A question asked in more words than it has: variations found by whoever plugs one in.

Belongs here: what a variation counts, and one expander that needs no model. What does not: ranking.
Off unless a `Retriever` is given an expander. The question itself always comes first and counts
most, so that an expander can add hits and hardly displace what the question finds. Combining
evidence of several formulations: Belkin et al., "Combining the evidence of multiple query
representations for information retrieval", 1995.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kb_resources.lexical import analyze_query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Expander = Callable[[str], Sequence[str]]
"""Gives variations of a question, best first; they may repeat it."""

MAX_VARIATIONS = 10
VARIATION_WEIGHT = 0.3
"""What a word or a meaning counts that only a variation has, beside one of the question."""
_WORD = re.compile(r"\w+")


def variations(expander: Expander | None, text: str) -> list[str]:
    """The question, then at most ten variations, each once."""
    given = expander(text) if expander is not None and text else ()
    others = (str(one).strip() for one in given)
    return list(dict.fromkeys([text, *(one for one in others if one)]))[: MAX_VARIATIONS + 1]


def lexemes_of(asked: Sequence[str]) -> dict[int, float]:
    """Lexemes of the question, and at less weight those that only variations have."""
    found = analyze_query(asked[0])
    for variation in asked[1:]:
        for number in analyze_query(variation):
            found.setdefault(number, VARIATION_WEIGHT)
    return found


def vector_of(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """One direction for all.

    Args:
        vectors: `(n, dim) float32`, the question's first, each L2-normalised.

    Returns:
        `(dim,) float32`, L2-normalised.
    """
    own: NDArray[np.float32] = vectors[0]
    if len(vectors) == 1:
        return own
    mixed: NDArray[np.float32] = own + VARIATION_WEIGHT * vectors[1:].mean(axis=0)
    length = float((mixed * mixed).sum()) ** 0.5
    if length > 0:
        mixed /= length
        return mixed
    return own


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Puts other words of the same meaning in place of a question's words, one at a time.

    Attributes:
        table: word in lower case to its synonyms, best first.
        most: variations at most, 1 to 10.
    """

    table: Mapping[str, Sequence[str]]
    most: int = 3

    def __call__(self, text: str) -> list[str]:
        """Variations of a question; none where no word of it is in the table."""
        found = [
            text[: match.start()] + other + text[match.end() :]
            for match in _WORD.finditer(text)
            for other in self.table.get(match.group().casefold(), ())
        ]
        return found[: max(1, min(self.most, MAX_VARIATIONS))]
