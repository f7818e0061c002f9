"""Searching in every knowledge store: words, vectors, filters and how many are found.

Numbers in brackets are those of the list of behaviours that the reference systems' own tests prove
(requirements, appendix B).
"""

from __future__ import annotations

import pytest

from kb_resources.errors import InputError

from .conftest import LEAVE, SPACE, START, Kept, vector_of

pytestmark = pytest.mark.requirement("O-09")


def test_more_fitting_words_rank_first_in_every_store(kept: Kept) -> None:
    kept.put("both", "Carry over of leave ends in March.")
    kept.put("one", "Leave is granted on request by the department.")
    kept.put("none", "Expenses are paid within a week.")
    assert kept.found("carry over leave") == ["both", "one"]


@pytest.mark.requirement("W-11")
def test_neither_words_nor_vector_find_nothing(kept: Kept) -> None:
    """[21]"""
    kept.put("leave", *LEAVE)
    assert kept.found() == kept.found("") == kept.found("   ") == []
    assert kept.found("\0") == []


def test_a_vector_alone_and_words_alone_give_their_own_scores_only(kept: Kept) -> None:
    """[21]"""
    kept.put("leave", *LEAVE)
    for hit in kept.store.search(vector=vector_of("leave"), scope=kept.scope):
        assert hit.text_score is None
        assert hit.vector_score is not None
    for hit in kept.store.search(text="leave", scope=kept.scope):
        assert hit.vector_score is None
        assert hit.text_score > 0


def test_text_finds_a_document_whose_vectors_are_not_there_yet(kept: Kept) -> None:
    """[15, 22]"""
    kept.put("leave", *LEAVE, vectors=False)
    assert kept.found("carry") == ["leave"]
    assert kept.found(vector=vector_of("carry")) == []
    assert kept.store.work("leave", scope=kept.scope).state == "pending"


def test_a_filter_that_matches_nothing_finds_nothing(kept: Kept) -> None:
    """[24]"""
    kept.put("leave", *LEAVE)
    assert kept.found("days", document_ids=["other"]) == []
    assert kept.found("days", document_ids=[]) == []
    assert kept.found("days", document_ids=["leave"]) == ["leave"]


def test_every_hit_respects_the_score_threshold(kept: Kept) -> None:
    """[59]"""
    for number in range(6):
        kept.put(f"d{number}", " ".join(["leave"] * (number + 1) + ["pay"] * (6 - number)))
    question = vector_of("leave leave leave leave")
    floor = kept.store.search(vector=question, k=3, scope=kept.scope)[2].vector_score
    for text in (None, "leave pay"):
        hits = kept.store.search(
            text=text, vector=question, k=10, min_vector_score=floor - 1e-4, scope=kept.scope
        )
        assert len(hits) == 3
        assert all(hit.vector_score >= floor - 1e-4 for hit in hits)


def test_five_are_found_unless_another_number_is_asked_for(kept: Kept) -> None:
    """[72]"""
    for number in range(8):
        kept.put(f"d{number}", f"Leave rule {number}.")
    assert len(kept.found("leave")) == 5
    assert len(kept.found("leave", k=8)) == 8


@pytest.mark.parametrize("values", [{"k": 0}, {"k": 101}, {"as_of": START.replace(tzinfo=None)}])
def test_bad_questions_are_refused(kept: Kept, values: dict[str, object]) -> None:
    with pytest.raises(InputError):
        kept.store.search(text="leave", scope=kept.scope, **values)


def test_the_store_says_which_model_its_vectors_are_by(kept: Kept) -> None:
    assert kept.store.space == SPACE
