"""The last look at vectors before anybody may keep them.

Belongs here: checks that hold for every embedder, local or remote. What does not: comparing with
golden or canary vectors (`golden`, `remote.canary`).
The tolerance follows float32 rounding over at most a few thousand dimensions (numpy.finfo).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kb_resources.errors import InputError, IntegrityError

UNIT_TOLERANCE = 1e-3
_SMALLEST_NORM = 1e-9
_NEXT = "Nothing was stored; check the model with `kb models verify`."


def check_texts(texts: Sequence[str]) -> None:
    """Refuse blank texts: a vector of nothing would be found by everything.

    Raises:
        InputError: a text has no character but white space.
    """
    for position, text in enumerate(texts):
        if not text or text.isspace():
            raise InputError(
                f"Text {position} of {len(texts)} is blank.",
                next_step="Leave blank texts out before embedding.",
            )


def to_unit(values: ArrayLike, *, source: str) -> NDArray[np.float32]:
    """Rows scaled to unit length.

    Args:
        values: `(n, dimensions)` numbers; rows need not be of unit length.
        source: names the model or endpoint in the error.

    Raises:
        IntegrityError: ragged, not numbers, not finite, or a row without direction.
    """
    vectors = _matrix(values, source)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    if not np.isfinite(norms).all():
        raise IntegrityError(f"{source} gave NaN or infinite values.", next_step=_NEXT)
    if not (norms > _SMALLEST_NORM).all():
        raise IntegrityError(f"{source} gave a vector of zeros.", next_step=_NEXT)
    unit: NDArray[np.float32] = (vectors / norms).astype(np.float32)
    return unit


def _matrix(values: ArrayLike, source: str) -> NDArray[np.float32]:
    try:
        found = np.asarray(values)
        if found.dtype.kind in "fiu":
            with np.errstate(over="ignore"):  # what does not fit becomes infinite and is refused
                return found.astype(np.float32, order="C")
    except ValueError:  # NumPy refuses ragged lists
        pass
    raise IntegrityError(
        f"{source} gave vectors of different lengths or something that is no number.",
        next_step=_NEXT,
    )


def check_vectors(
    values: ArrayLike, *, count: int, dimensions: int, source: str
) -> NDArray[np.float32]:
    """Return `values` as `(count, dimensions)` float32 or refuse all of them.

    Args:
        values: what the model gave.
        count: how many texts it was given.
        dimensions: the model's vector length.
        source: names the model or endpoint in the error.

    Raises:
        IntegrityError: ragged, wrong shape, not finite, or not of unit length.
    """
    vectors = _matrix(values, source)
    if vectors.shape != (count, dimensions):
        raise IntegrityError(
            f"{source} gave an array of shape {vectors.shape}, expected {(count, dimensions)}.",
            next_step=_NEXT,
        )
    if not np.isfinite(vectors).all():
        raise IntegrityError(f"{source} gave NaN or infinite values.", next_step=_NEXT)
    norms = np.linalg.norm(vectors, axis=1)
    if count and float(np.abs(norms - 1).max()) > UNIT_TOLERANCE:
        raise IntegrityError(
            f"{source} gave vectors that are not of unit length "
            f"({norms.min():.4f} to {norms.max():.4f}).",
            next_step=_NEXT,
        )
    return vectors
