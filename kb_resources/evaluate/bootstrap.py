"""Percentile intervals by resampling questions, seeded so that a run prints the same twice.

Belongs here: resampling. What does not: what is resampled. See Efron and Tibshirani, "An
Introduction to the Bootstrap", 1993; for search, Sakai, "Evaluating evaluation metrics based on
the bootstrap", SIGIR 2006.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 2_000
SEED = 20_260
LEVEL = 0.95
_AT_ONCE = 2_000_000


def interval(values: Sequence[float], *, seed: int = SEED) -> tuple[float, float] | None:
    """95 % interval of the mean; None of fewer than two values."""
    if len(values) < 2:
        return None
    means = _means(values, seed)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def paired(differences: Sequence[float], *, seed: int = SEED) -> tuple[float, float, float]:
    """Interval of the mean difference, and the two-sided share of resamples beyond zero.

    Args:
        differences: one per question, new minus old; at least two.
        seed: of the resampling.
    """
    means = _means(differences, seed)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    beyond = 2 * min(float(np.mean(means <= 0)), float(np.mean(means >= 0)))
    return float(low), float(high), min(1.0, beyond)


def _means(values: Sequence[float], seed: int) -> np.ndarray:  # (RESAMPLES,) float64
    given = np.asarray(values, np.float64)
    chance = np.random.default_rng(seed)
    rows = max(1, _AT_ONCE // len(given))
    parts = []
    for start in range(0, RESAMPLES, rows):
        size = (min(rows, RESAMPLES - start), len(given))
        parts.append(given[chance.integers(len(given), size=size)].mean(axis=1))
    return np.concatenate(parts)
