"""Filters of odd values, alone and together, over one scope or several: hits, or InputError."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kb_resources.errors import InputError, NotFound
from kb_resources.model import Principal
from kb_resources.retrieve import SearchFilters

from .conftest import World

ODD = [
    *("", "a", "alpha", "en", "text/plain", "doc", "%", "_", "'", '"', "\\", "{}", "{a,b}", "NULL"),
    *(
        "'; drop table kb.lex; --",
        "\x00",
        "\ud800",
        "a\x00b",
        "👩‍👩‍👧",
        "x" * 10_000,
        "$1",
        "%s",
        "\n",
    ),
]


def publish(world: World) -> None:
    world.publish("doc", ["alpha beta"], metadata={"topic": "x", "o'k": '"'}, title="Head")
    world.publish("other", ["alpha gamma"], language="de", media_type="text/html", title="Head")


@pytest.mark.requirement("B-21", "P-28")
def test_each_filter_lets_through_what_it_names(world: World) -> None:
    publish(world)
    for filters, expected in (
        (SearchFilters(languages=["de"]), {"other"}),
        (SearchFilters(media_types=["text/html", "text/plain"]), {"doc", "other"}),
        (SearchFilters(documents=["doc"]), {"doc"}),
        (SearchFilters(documents=[]), set()),
        (SearchFilters(heading_prefix=["Head"]), {"doc", "other"}),
        (SearchFilters(heading_prefix=["Head", "x"]), set()),
        (SearchFilters(heading_prefix=[]), {"doc", "other"}),
        (SearchFilters(metadata={"topic": "x"}), {"doc"}),
        (SearchFilters(metadata={"o'k": '"'}), {"doc"}),
        (SearchFilters(metadata={}), {"doc", "other"}),
        (SearchFilters(metadata={"topic": "x"}, languages=["de"]), set()),
    ):
        for mode in ("hybrid", "text", "vector"):
            assert set(world.found("alpha", filters=filters, mode=mode)) == expected, filters


def odd_filters(chance: random.Random) -> SearchFilters:
    def texts() -> Any:
        return chance.choice([None, [], [chance.choice(ODD)], chance.choices(ODD, k=3)])

    def value(depth: int = 0) -> Any:
        kind = chance.randrange(7 if depth < 4 else 5)
        if kind == 5:
            return [value(depth + 1) for _ in range(chance.randrange(3))]
        if kind == 6:
            return {chance.choice(ODD): value(depth + 1) for _ in range(chance.randrange(3))}
        plain = (None, True, chance.randrange(-(10**30), 10**30), 1e308, chance.choice(ODD))
        return plain[kind]

    metadata = chance.choice([None, {}, {chance.choice(ODD): value()}, {"topic": value()}])
    return SearchFilters(texts(), texts(), texts(), texts(), metadata)


def fuzz(world: World, rounds: int) -> int:
    chance = random.Random(11)
    refused = 0
    for _ in range(rounds):
        try:
            hits = world.search("alpha", filters=odd_filters(chance), mode="text").hits
        except InputError:
            refused += 1
        else:
            assert {hit.document_id for hit in hits} <= {"doc", "other"}
    return refused


@pytest.mark.requirement("W-44")
def test_random_filters_find_nothing_else_and_never_fail(world: World) -> None:
    publish(world)
    assert 0 < fuzz(world, 300) < 300


@pytest.mark.long
@pytest.mark.requirement("W-44")
def test_ten_thousand_random_filters_never_fail(world: World) -> None:
    publish(world)
    assert 0 < fuzz(world, 10_000) < 10_000


@pytest.mark.parametrize(
    "filters",
    [
        SearchFilters(languages="en"),
        SearchFilters(documents=[1]),  # type: ignore[list-item]
        SearchFilters(metadata=["a"]),  # type: ignore[arg-type]
        SearchFilters(metadata={"a": float("nan")}),
        SearchFilters(metadata={"a": {1: 2}}),
        SearchFilters(metadata={"a": "\ud800"}),
        SearchFilters(media_types=["\0"]),
    ],
)
def test_filters_that_are_none_are_refused_by_type(world: World, filters: SearchFilters) -> None:
    publish(world)
    with pytest.raises(InputError) as raised:
        world.search("alpha", filters=filters)
    assert raised.value.next_step


@pytest.mark.requirement("W-48")
def test_several_scopes_are_searched_at_once_and_none_that_one_does_not_hold(world: World) -> None:
    publish(world)
    second = f"{world.scope}-b"
    world.publish("there", ["alpha delta"], scope=second)
    both = [world.scope, second]
    for mode in ("hybrid", "text", "vector"):
        found = world.search("alpha", scopes=both, mode=mode).hits
        assert {(hit.scope, hit.document_id) for hit in found} == {
            (world.scope, "doc"),
            (world.scope, "other"),
            (second, "there"),
        }
        assert [hit.rank for hit in found] == [1, 2, 3]
    holder = Principal("test", scopes=frozenset({world.scope}))
    with pytest.raises(NotFound):
        world.search("alpha", scopes=both, principal=holder)
    filters = SearchFilters(documents=["there", "doc"])
    assert set(world.found("alpha", scopes=both, filters=filters)) == {"doc", "there"}
