"""Relevance: one number from a hit's signals, and when the answer is nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kb_resources.retrieve.hit import Hit
from kb_resources.retrieve.relevance import calibration, calibrations, weighed


def hit(cosine: float | None, share: float | None, rank: int = 1) -> Hit:
    return Hit(
        *(rank, "s", "d", 1, "0" * 64, "p", "t", (), None, None, 0, 1, 0, 1, "en", None, None),
        *("source", "text/plain", "", "text"),
        cosine=cosine,
        text_share=share,
    )


def test_it_rises_with_both_signals_and_stays_between_nothing_and_one() -> None:
    for used in calibrations():
        cosines = [used.relevance(hit(n / 20, 0.1)) for n in range(-20, 21)]
        shares = [used.relevance(hit(0.85, n / 20)) for n in range(21)]
        for row in (cosines, shares):
            assert all(a <= b for a, b in pairwise(row))
            assert 0 <= row[0] <= row[-1] <= 1
        assert 0 < used.nothing_below < 1
        assert used.relevance(hit(None, None)) < used.nothing_below


@pytest.mark.requirement("O-31")
def test_the_first_hit_says_whether_anything_was_found() -> None:
    used = calibration("multilingual-e5-small@0123", "hybrid")
    assert used is not None
    good, bad = hit(0.92, 0.3), hit(0.78, 0.05, 2)
    assert weighed((good, bad), used)[1] is False
    assert weighed((bad, good), used)[1] is True
    assert weighed((), used) == ((), True)
    found, _ = weighed((good, bad), used)
    assert found[0].relevance is not None
    assert found[0].relevance > 0.9
    assert found[0].relevance == round(found[0].relevance, 2)


def test_models_and_modes_without_a_calibration_have_no_number() -> None:
    assert calibration("another@1", "hybrid") is None
    assert calibration(None, "hybrid") is None
    assert calibration("multilingual-e5-small@0123", "text") is None
    assert weighed((hit(0.1, 0.0),), None) == ((hit(0.1, 0.0),), False)
