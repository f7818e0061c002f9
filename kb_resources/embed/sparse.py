"""Learned term weights: the sparse half of models such as BGE-M3.

Belongs here: from token weights to one sparse vector, and reading the head's weights. What does
not: storing or ranking them (`store`, `retrieve`). The rule is BGE-M3's (Chen et al. 2024): the
largest weight of each token id, special tokens left out.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb_resources.errors import IntegrityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_TERMS = 1000
_STORAGES = {b"HalfStorage": "<f2", b"FloatStorage": "<f4", b"BFloat16Storage": "bf16"}


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Weights of the tokens a text is about.

    Attributes:
        ids: `(n,)` int32, ascending token ids from 0.
        weights: `(n,)` float32, positive.
        dimensions: size of the vocabulary.
    """

    ids: NDArray[np.int32]
    weights: NDArray[np.float32]
    dimensions: int

    def __str__(self) -> str:
        """As pgvector's `sparsevec` reads it; its indexes start at 1."""
        entries = zip(self.ids.tolist(), self.weights.tolist(), strict=True)
        inside = ",".join(f"{at + 1}:{weight:.6g}" for at, weight in entries)
        return f"{{{inside}}}/{self.dimensions}"

    def dot(self, other: SparseVector) -> float:
        """Inner product."""
        _, ours, theirs = np.intersect1d(
            self.ids, other.ids, assume_unique=True, return_indices=True
        )
        return float(self.weights[ours] @ other.weights[theirs])


def sparse_vector(
    ids: NDArray[np.int64],
    weights: NDArray[np.float32],
    *,
    dimensions: int,
    ignored: Collection[int],
    max_terms: int = MAX_TERMS,
) -> SparseVector:
    """One text's sparse vector.

    Args:
        ids: `(length,)` its token ids, special tokens included.
        weights: `(length,)` what the model gave each of them.
        dimensions: size of the vocabulary.
        ignored: ids of special tokens.
        max_terms: keep so many of the heaviest.

    Raises:
        IntegrityError: a weight is not finite, or an id is outside the vocabulary.
    """
    if weights.shape != ids.shape or not np.isfinite(weights).all():
        raise IntegrityError(
            "The model gave token weights that are not one finite number for each token.",
            next_step="Nothing was stored; check the model with `kb models verify`.",
        )
    largest = np.zeros(dimensions, np.float32)
    kept = (weights > 0) & ~np.isin(ids, list(ignored))
    if kept.any() and int(ids[kept].max()) >= dimensions:
        raise IntegrityError(
            f"The tokenizer gave an id beyond the model's {dimensions} tokens.",
            next_step="Prepare the model again with its own tokenizer.json.",
        )
    np.maximum.at(largest, ids[kept], weights[kept])
    found = np.flatnonzero(largest)
    if len(found) > max_terms:
        heaviest = np.lexsort((found, -largest[found]))[:max_terms]
        found = np.sort(found[heaviest])
    return SparseVector(found.astype(np.int32), largest[found], dimensions)


@dataclass(frozen=True, slots=True)
class SparseHead:
    """A linear layer from a token's state to its weight.

    Attributes:
        weights: `(hidden,)` float32.
        bias: added to the product.
    """

    weights: NDArray[np.float32]
    bias: float

    def __call__(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weights `(batch, length)` of token states `(batch, length, hidden)`, not negative."""
        weights: NDArray[np.float32] = np.maximum(states @ self.weights + self.bias, 0)
        return weights

    @classmethod
    def read(cls, path: Path, hidden: int) -> SparseHead:
        """Read a PyTorch file of one linear layer without running any of its pickle.

        The file is a zip archive: one record of `hidden` numbers is the matrix, one of a single
        number the bias, and the pickle names their type.

        Raises:
            IntegrityError: the file is something else.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                pickle = archive.read(next(name for name in names if name.endswith("/data.pkl")))
                kinds = [dtype for mark, dtype in _STORAGES.items() if b"\n" + mark in pickle]
                (kind,) = kinds
                size = 4 if kind == "<f4" else 2
                records = [archive.read(name) for name in names if "/data/" in name]
            (matrix,) = (data for data in records if len(data) == hidden * size)
            (bias,) = (data for data in records if len(data) == size)
        except (OSError, ValueError, StopIteration, KeyError, zipfile.BadZipFile) as error:
            raise IntegrityError(
                f"{path} is not the sparse head of a model with {hidden} hidden units.",
                next_step="Take the file from where the model comes from.",
            ) from error
        return cls(_floats(matrix, kind), float(_floats(bias, kind)[0]))


def _floats(data: bytes, kind: str) -> NDArray[np.float32]:
    if kind == "bf16":  # the upper half of a float32
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").astype(np.float32)
    return np.frombuffer(data, kind).astype(np.float32)
