"""Which of two close languages a text is more likely in, by weights of letter sequences.

Belongs here: reading the packaged table and summing it over a text. The table is written by
`tools/language/build_weights.py` from the models of Lingua (Apache-2.0), never by hand.
Source: stupid back-off, Brants et al., "Large Language Models in Machine Translation" (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from kb_resources.language.alphabet import MAX_GRAM, gram_codes

_SCALE = 16.0


@dataclass(frozen=True, slots=True)
class PairWeights:
    """Log-likelihood ratios of letter sequences for one pair of languages.

    Attributes:
        codes: (n,) uint32, sorted; see `alphabet.encode_gram`.
        weights: (n,) int8 in sixteenths of a nat, positive for the first language.
    """

    codes: NDArray[np.uint32]
    weights: NDArray[np.int8]

    def score(self, cyrillic: str) -> float:
        """Sum over the letters of a lower-case Cyrillic text, in nats; positive: the first."""
        grams = gram_codes(cyrillic)
        total = np.zeros(len(grams))
        open_ = np.ones(len(grams), dtype=bool)
        for column in range(MAX_GRAM - 1, -1, -1):
            wanted = grams[:, column]
            at = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
            found = open_ & (wanted > 0) & (self.codes[at] == wanted)
            total[found] = self.weights[at[found]]
            open_ &= ~found
        return float(total.sum()) / _SCALE


@cache
def pair_weights(first: str, second: str) -> PairWeights:
    """The packaged weights of a pair: hr/sr, mk/sr or mk/bg; loaded once (about 20 ms)."""
    source = resources.files("kb_resources.language") / "weights.npz"
    with source.open("rb") as stream, np.load(stream) as arrays:
        name = f"{first}_{second}"
        return PairWeights(arrays[f"{name}_codes"], arrays[f"{name}_weights"])
