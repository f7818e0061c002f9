"""Fusion by scores: at its ends the order of one list, in between both, never a NaN."""

from __future__ import annotations

import random

import pytest

from kb_resources.errors import InputError
from kb_resources.retrieve.weighing import weighted

from .conftest import WORDS, World
from .test_ranking import random_corpus


@pytest.mark.requirement("W-18")
def test_the_ends_are_the_order_of_one_list(world: World) -> None:
    random_corpus(world, 5)
    chance = random.Random(6)
    for _ in range(15):
        query = " ".join(chance.choices(WORDS, k=chance.randint(1, 4)))
        for weight, mode in ((1.0, "vector"), (0.0, "text")):
            alone = world.search(query, mode=mode, k=20).hits
            mixed = world.search(query, k=20, fusion="weighted", meaning_weight=weight)
            assert mixed.score_kind == "weighted"
            assert [hit.passage_id for hit in mixed.hits] == [hit.passage_id for hit in alone]
        between = world.search(query, k=20, fusion="weighted", meaning_weight=0.5).hits
        assert [hit.score for hit in between] == sorted((h.score for h in between), reverse=True)
        assert all(0 < hit.score <= 1 for hit in between)


def test_one_hit_or_equal_scores_divide_by_nothing() -> None:
    row = {"text_score": 1.0, "vector_score": None, "text_rank": 1, "vector_rank": None}
    assert weighted([], 0.7) == []
    assert weighted([row], 0.5)[0]["score"] == 0.5
    assert [one["score"] for one in weighted([row, dict(row)], 0.0)] == [1.0, 1.0]
    assert weighted([row], 1.0) == []


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(world: World, weight: float) -> None:
    with pytest.raises(InputError, match="is not a weight"):
        world.search("x", fusion="weighted", meaning_weight=weight)


def test_without_vectors_words_alone_decide(world: World) -> None:
    world.publish("a", ["leave days", "leave"], with_vectors=False)
    found = world.search("leave days", fusion="weighted", mode="text").hits
    assert [hit.text for hit in found] == ["leave days", "leave"]
