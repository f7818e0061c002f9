"""Questions of odd characters, odd lengths, or a statement's syntax: an answer, never an error."""

from __future__ import annotations

import random

import pytest

from .conftest import WORDS, World

ODD = [
    *(
        "",
        " ",
        "\0",
        "\ud800",
        "a\0b",
        "alpha\ud83d",
        "\U0001f600",
        "👩‍👩‍👧‍👦 alpha",
        "a" * 100_000,
    ),
    *("& | ! : * ( ' \"", "alpha & !beta", "'; drop table kb.lex; --", "%s %(x)s {} {0}", "\\"),
    *("(.*", "[a-", "<->", "a <2> b", "alpha:*", "::int", "$1", "NULL", "{1:1}/5", "[1,2]", "§"),
    *("§" * 500, "§ 15 § 16", "-" * 5000, "\u202e alpha", "\ufeff", "\u0301" * 50, "ﷺ" * 100),
    *(
        "1" * 400,
        "1.2.3." * 200,
        "ａｌｐｈａ",
        "alpha\n\r\t\v\f beta",
        "ΑΛΦΑ",
        "東京都の人口",
        "한국어",
    ),
    *("a " * 50_000, "alpha " * 20_000, "@@@ ### $$$", "İstanbul ı", "\x1f\x1e", "0x00", "'"),
    "한국어 검색",
]


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_odd_questions_give_results_or_none_and_never_an_error(world: World, mode: str) -> None:
    world.publish("doc", ["alpha beta § 15", "東京都の人口は多い"])
    for query in ODD:
        found = world.search(query, mode=mode)
        assert len(found.hits) <= 8
    assert world.found("ａｌｐｈａ", mode="text") == ["doc"]
    assert world.found("alpha\0\ud800beta", mode="text") == ["doc"]
    assert world.found("東京", mode="text") == ["doc"]
    assert world.found("'; drop table kb.lex; --", mode="text") == []


def fuzz(world: World, rounds: int) -> None:
    chance = random.Random(7)
    pieces = [*ODD[2:40], *WORDS, *"&|!():*'\"\\%{}[]$<>@#~^`;,./?-=+§№", "alpha", "\n", " or "]
    for _ in range(rounds):
        query = "".join(chance.choice(pieces)[:200] for _ in range(chance.randint(1, 12)))
        query += chr(chance.choice([chance.randrange(0x20), chance.randrange(0x110000)]))
        assert isinstance(world.search(query, mode="text").hits, tuple)


@pytest.mark.requirement("O-25")
def test_random_questions_never_fail(world: World) -> None:
    world.publish("doc", ["alpha beta § 15"])
    fuzz(world, 200)


@pytest.mark.long
def test_ten_thousand_random_questions_never_fail(world: World) -> None:
    world.publish("doc", ["alpha beta § 15"])
    fuzz(world, 10_000)
