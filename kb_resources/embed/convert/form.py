"""How a model's weights and tokens are calculated; in the fingerprint, known before any build.

Belongs here: names. What does not: the graph (`encoder`), the tokenizer (`embed.unigram`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Arithmetic = Literal["w7a8", "float32"]

TOKENIZER_RULES = "xlmr-unigram-nmt-nfkc-v1"
"""The rules of `embed.unigram`; change it when token ids may change."""


@dataclass(frozen=True, slots=True)
class Form:
    """How the same weights are calculated with.

    Attributes:
        arithmetic: `w7a8`, 7-bit weights and 8-bit activations scaled for each token, or
            `float32`, the reference that golden vectors and benchmarks compare with.
        mask: whether the graph takes an attention mask, which padded batches need.
    """

    arithmetic: Arithmetic = "w7a8"
    mask: bool = False

    @property
    def name(self) -> str:
        """Stands in the manifest and in the fingerprint."""
        return f"{self.arithmetic}{'-masked' if self.mask else ''}-e4-v1"
