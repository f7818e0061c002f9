"""How many hits, how relevant, and what their scores mean."""

from __future__ import annotations

import pytest

from kb_resources.retrieve import SearchFilters, relevance
from kb_resources.retrieve.relevance import Calibration

from .conftest import WORDS, World


@pytest.fixture
def calibrated(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose model has a calibration, so that hits carry a relevance."""
    made = Calibration("tiny", "hybrid", -2.0, 3.0, 4.0, nothing_below=0.2)
    monkeypatch.setattr(relevance, "calibrations", lambda: (made,))
    for number in range(12):
        texts = [" ".join(WORDS[at % len(WORDS)] for at in range(number, number + 1 + number % 5))]
        world.publish(f"d{number}", texts, metadata={"half": str(number % 2)})
    return world


@pytest.mark.requirement("W-17")
def test_a_higher_threshold_keeps_a_beginning_of_what_a_lower_one_keeps(calibrated: World) -> None:
    for query in ("leave days", "sick child", "budget"):
        whole = calibrated.search(query, k=100).hits
        assert len({hit.relevance for hit in whole}) > 2
        before = [hit.passage_id for hit in whole]
        for step in range(101):
            found = calibrated.search(query, k=100, min_score=step / 100).hits
            assert all(hit.relevance is not None and hit.relevance >= step / 100 for hit in found)
            now = [hit.passage_id for hit in found]
            assert set(now) <= set(before)
            assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
            before = now
        assert before == [hit.passage_id for hit in whole if hit.relevance == 1.0]


@pytest.mark.requirement("W-17")
def test_the_number_of_hits_and_the_metadata_hold_with_a_threshold(calibrated: World) -> None:
    odd = SearchFilters(metadata={"half": "1"})
    whole = calibrated.search("leave days", k=100, filters=odd).hits
    assert {hit.document_id for hit in whole} <= {f"d{number}" for number in range(1, 12, 2)}
    least = sorted(hit.relevance or 0.0 for hit in whole)[len(whole) // 2]
    kept = calibrated.search("leave days", k=2, filters=odd, min_score=least).hits
    assert len(kept) == 2
    assert all((hit.relevance or 0.0) >= least for hit in kept)


@pytest.mark.requirement("P-22")
def test_a_score_is_a_sum_of_reciprocal_ranks_and_says_so(world: World) -> None:
    world.publish("a", ["leave"])
    for mode, expected in (("text", 1 / 61), ("vector", 1 / 61), ("hybrid", 2 / 61)):
        for question in ("leave", "leave budget key"):  # however well it answers
            found = world.search(question, mode=mode, fusion="rrf")
            assert found.score_kind == "rrf"
            assert found.hits[0].score == pytest.approx(expected)
    assert round(1 / 61, 4) == 0.0164
    kinds = {
        fusion: world.search("leave", fusion=fusion).score_kind
        for fusion in ("adaptive", "rrf", "weighted")
    }
    assert kinds == {"adaptive": "rrf_adaptive", "rrf": "rrf", "weighted": "weighted"}
