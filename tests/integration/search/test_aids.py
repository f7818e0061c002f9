"""Reading aids over real rows: sections joined, questions expanded, an honest nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kb_resources.errors import InputError
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever, Synonyms, hierarchy_join
from kb_resources.retrieve.expand import VARIATION_WEIGHT
from kb_resources.store import passages

from .conftest import World

WHO = Principal("test")


@pytest.mark.requirement("W-32", "W-35")
def test_hits_of_a_section_are_one_with_its_siblings_in_order(world: World) -> None:
    world.publish("rules", ["zero", "leave alpha", "two", "leave beta", "four", "five"])
    world.publish("other", ["leave gamma"])
    hits = world.search("leave", mode="text").hits
    joined = hierarchy_join(world.database, hits, principal=WHO)
    assert sorted(one.hit.document_id for one in joined) == ["other", "rules"]
    rules = next(one for one in joined if one.hit.document_id == "rules")
    assert [one.text for one in rules.passages] == [
        "zero",
        "leave alpha",
        "two",
        "leave beta",
        "four",
    ]
    assert rules.ancestors == ("rules",)
    assert rules.text == "zero\n\nleave alpha\n\ntwo\n\nleave beta\n\nfour"
    assert len(rules.ranks) == 2
    assert rules.hit.rank == min(rules.ranks)
    bare = hierarchy_join(world.database, hits, principal=WHO, siblings=0)
    assert sum(len(one.passages) for one in bare) == len(hits)
    with pytest.raises(InputError):
        hierarchy_join(world.database, hits, principal=WHO, siblings=51)


def test_what_is_hidden_since_the_search_is_flagged_and_shows_no_sibling(world: World) -> None:
    world.publish("rules", ["zero", "leave alpha", "two"])
    hits = world.search("leave", mode="text").hits
    with world.pipeline() as conn:
        passages.set_audiences(conn, world.row("rules").document_key, ["board"])
    (joined,) = hierarchy_join(world.database, hits, principal=WHO)
    assert joined.gone
    assert [one.text for one in joined.passages] == ["leave alpha"]
    holder = Principal("test", audiences=frozenset({"board"}))
    (joined,) = hierarchy_join(world.database, hits, principal=holder)
    assert not joined.gone
    assert len(joined.passages) == 3


@pytest.mark.requirement("W-33")
def test_a_question_may_be_asked_in_other_words_too(world: World) -> None:
    world.publish("a", ["the vacation lasts thirty days"])
    world.publish("b", ["leave is asked for early"])
    synonyms = Synonyms({"leave": ["vacation", "holiday"]})
    plain = Retriever(world.database)
    wide = Retriever(world.database, expander=synonyms)

    def found(retriever: Retriever, query: str) -> list[str]:
        return [
            hit.document_id
            for hit in retriever.search(query, principal=WHO, scope=world.scope, mode="text").hits
        ]

    assert found(plain, "leave") == ["b"]
    assert found(wide, "leave") == ["b", "a"]  # the question's own word counts most
    assert 0 < VARIATION_WEIGHT < 1
    assert found(wide, "nothing of it") == found(plain, "nothing of it")


@pytest.mark.parametrize(
    "expander",
    [
        lambda _: [],
        lambda text: [text, text, "", "  "],
        lambda _: ["\0", "\ud800", "x" * 100_000, *(str(n) for n in range(50))],
    ],
)
def test_whatever_an_expander_gives_the_question_is_still_answered(
    world: World, expander: object
) -> None:
    world.publish("a", ["leave is thirty days"])

    def given(text: str) -> Sequence[str]:
        return expander(text)  # type: ignore[operator, no-any-return]

    retriever = Retriever(world.database, embedder=lambda: world.embedder, expander=given)
    for mode in ("text", "vector", "hybrid"):
        hits = retriever.search("leave", principal=WHO, scope=world.scope, mode=mode).hits
        assert [hit.document_id for hit in hits] == ["a"]


def test_a_model_without_a_calibration_gives_no_estimate_and_no_verdict(world: World) -> None:
    world.publish("a", ["Employees take thirty days of annual leave each year."])
    for mode in ("hybrid", "vector", "text"):
        found = world.search("Who composed the opera Rusalka, each year?", mode=mode)
        assert found.hits[0].relevance is None
        assert not found.nothing_relevant
