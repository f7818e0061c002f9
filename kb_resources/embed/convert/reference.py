"""The E5 encoder in plain float64 NumPy, independent of ONNX: what golden vectors come from.

Belongs here: slow and obvious arithmetic. What does not: anything that runs in production.
The formulas are BERT's (Devlin et al. 2019) with the exact GELU (Hendrycks and Gimpel 2016).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kb_resources.embed.convert.weights import Quantised, Weights

Matrix = NDArray[np.float64]


def _erf(values: Matrix) -> Matrix:
    found: Matrix = np.vectorize(math.erf, otypes=[np.float64])(values)
    return found


class ReferenceEncoder:
    """One text at a time; the rows of a batch never meet."""

    def __init__(self, weights: Weights) -> None:
        """Bind to weights."""
        self._w = weights

    def _linear(self, state: Matrix, name: str) -> Matrix:
        matrix = self._w.matrix(f"{name}.w", state.shape[-1]).astype(np.float64)
        return state @ matrix.T + self._w.float32(f"{name}.b")

    def _norm(self, state: Matrix, name: str) -> Matrix:
        centred = state - state.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._w.epsilon)
        gain, bias = self._w.float32(f"{name}.w"), self._w.float32(f"{name}.b")
        normed: Matrix = centred / deviation * gain + bias
        return normed

    def embed(self, ids: list[int]) -> Matrix:
        """The L2-normalised mean of the token states, `(hidden,)` float64."""
        w = self._w
        words = w.quantised("emb.word", w.hidden)
        rows = Quantised(words.values[ids], words.scales[ids]).float32().astype(np.float64)
        positions = w.float32("emb.pos").reshape(-1, w.hidden)[: len(ids)]
        state = rows + positions + w.float32("emb.type").reshape(-1, w.hidden)[0]
        state = self._norm(state, "emb.ln")
        width = w.hidden // w.heads
        for layer in range(w.layers):
            name = f"l{layer}"
            query, key, value = (
                self._linear(state, f"{name}.{part}").reshape(len(ids), w.heads, width)
                for part in "qkv"
            )
            scores = np.einsum("ihd,jhd->hij", query, key) / math.sqrt(width)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            weights /= weights.sum(axis=-1, keepdims=True)
            mixed = np.einsum("hij,jhd->ihd", weights, value).reshape(len(ids), w.hidden)
            state = self._norm(state + self._linear(mixed, f"{name}.ao"), f"{name}.aln")
            inner = self._linear(state, f"{name}.fi")
            inner = inner * 0.5 * (1 + _erf(inner / math.sqrt(2)))
            state = self._norm(state + self._linear(inner, f"{name}.fo"), f"{name}.oln")
        mean = state.mean(axis=0)
        unit: Matrix = mean / np.linalg.norm(mean)
        return unit
