"""Searches that demand words: any, all, or those with all first."""

from __future__ import annotations

import random

import pytest

from kb_resources.errors import InputError
from kb_resources.lexical import analyze, query_words
from kb_resources.store import search as statements

from .conftest import WORDS, World
from .test_ranking import random_corpus

CORPUS = {
    "both": "The notice period is four weeks.",
    "swapped": "Periods of time, notices on the board, and much more that is about neither.",
    "notice": "The notice was put on the board.",
    "period": "A period of calm.",
    "neither": "Lunch is at noon.",
}


@pytest.fixture
def library(world: World) -> World:
    for name, text in CORPUS.items():
        world.publish(name, [text])
    return world


@pytest.mark.requirement("P-23")
def test_a_passage_holds_any_of_the_words_or_all_of_them(library: World) -> None:
    def found(words: str, **more: str) -> list[str]:
        return library.found("the notice period", words=words, mode="text", **more)

    assert set(found("any")) == {"both", "swapped", "notice", "period"}
    assert found("all") == ["both", "swapped"]  # by their stems, in any order, best first
    first = found("all_first")
    assert first[:2] == ["both", "swapped"]
    assert set(first) == set(found("any"))
    assert library.found("notice of lunch", words="all") == []
    assert library.found("notice of lunch", words="all_first")  # then any of them


@pytest.mark.requirement("P-23")
@pytest.mark.parametrize("mode", ["text", "hybrid", "vector"])
@pytest.mark.parametrize("fusion", ["adaptive", "weighted"])
def test_what_is_demanded_is_there_and_ranked_as_ever(world: World, mode: str, fusion: str) -> None:
    random_corpus(world, 3)
    chance = random.Random(4)
    for _ in range(12):
        asked = set(chance.sample(WORDS, k=chance.randint(1, 3)))
        given = {"mode": mode, "fusion": fusion, "k": 100}
        query = " ".join(sorted(asked))

        def holds(text: str, asked: set[str] = asked) -> bool:
            return asked <= set(text.split())

        free = [hit.text for hit in world.search(query, **given).hits]
        all_ = [hit.text for hit in world.search(query, words="all", **given).hits]
        assert sorted(all_) == sorted(text for text in free if holds(text))
        if mode != "hybrid":  # where both lists are one, leaving rows out changes no order
            assert all_ == [text for text in free if holds(text)]
        first = [hit.text for hit in world.search(query, words="all_first", **given).hits]
        assert first[: len(all_)] == all_
        assert sorted(first) == sorted(free)
        few = world.search(query, words="all_first", **{**given, "k": 3}).hits
        assert [hit.text for hit in few] == first[:3]
        assert [hit.rank for hit in few] == list(range(1, len(few) + 1))


@pytest.mark.requirement("P-23")
def test_other_conditions_hold_beside_the_words(library: World) -> None:
    library.publish("board", ["The notice period of the board."], audiences=["board"])
    assert "board" not in library.found("notice period", words="all")
    assert "board" in library.found("notice period", words="all", audiences=["board"])
    other = World(library.database, f"{library.scope}-other")
    other.publish("there", ["A notice period elsewhere."])
    assert "there" not in library.found("notice period", words="all")
    both = [library.scope, other.scope]
    assert "there" in library.found("notice period", words="all", scopes=both)
    with library.database.transaction("app") as conn:  # that sees no scope
        row = conn.execute(
            "select kb.holding(%s, '{0}', %s)",
            [[library.scope_id], list(query_words("notice")[0][:1])],
        ).fetchone()
    assert row == ([],)


@pytest.mark.requirement("P-23")
def test_scopes_of_any_size_and_index_hold_to_the_words(
    library: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that leave the statement are those of its own list, not of a nearest neighbour's."""
    calls = []
    run = statements.run
    monkeypatch.setattr(statements, "run", lambda *given: calls.append(given) or run(*given))
    assert library.found("notice period", words="all", k=2) == ["both", "swapped"]
    assert library.found("notice period", words="all_first", k=2) == ["both", "swapped"]
    assert len(calls) == 2  # enough were there, so nothing else was asked


def test_a_reader_of_the_release_before_still_searches(library: World) -> None:
    """While a deployment is rolled out, it calls the statement without what came later."""
    with library.database.transaction("app", library.scope) as conn:
        rows = conn.execute(
            "select scope, document_id from kb.search(%s::int[], %s::int[], array[1]::real[],"
            " null, null, '{}', now(), false, 5, 100, false, null, null, null, null, null, 1, 0.3)",
            [[library.scope_id], [query_words("lunch")[0][0]]],
        ).fetchall()
    assert rows == [(library.scope, "neither")]


def test_a_question_of_function_words_demands_nothing(library: World) -> None:
    assert query_words("what is this that we are") == ()
    found = library.found("what is this that we are", words="all")
    assert found == library.found("what is this that we are")


def test_an_unknown_choice_is_refused(library: World) -> None:
    with pytest.raises(InputError, match="choice of words"):
        library.search("x", words="some")


@pytest.mark.requirement("P-23")
@pytest.mark.parametrize(
    ("question", "passage", "language", "held"),
    [
        ("notice periods", "The period of notice", "en", True),
        ("Kündigungsfrist", "Die Kündigungsfristen gelten.", "de", True),
        ("Kündigungsfrist", "Die Frist läuft.", "de", False),
        ("Frist", "Die Kündigungsfrist läuft.", "de", True),
        ("ugovor o radu", "уговор о раду", "sr", True),
        ("INV-2024/0815", "Invoice INV-2024/0815 is paid", "en", True),
        ("INV-2024/0815", "Invoice INV-2024/0816 of 0815 is paid", "en", False),
        ("customer-facing", "a customer facing role", "en", True),
        ("customer-facing", "facing the wall", "en", False),
        ("e-mail", "send an email", "en", True),
        ("client/server", "the server", "en", False),
        ("C++", "the letter C", "en", False),
        ("C++", "written in C++", "en", True),
        ("1.000 Euro", "1000 Euro", "de", True),
        ("getUserName", "call getUserName()", "en", True),
        ("§ 15", "nach § 15 Abs. 2", "de", True),
        ("Müller's offer", "Müller had an offer", "en", True),
        ("日本語", "日本語の本", "ja", True),
    ],
)
def test_what_counts_as_a_word(question: str, passage: str, language: str, held: bool) -> None:
    terms = analyze(passage, language).terms.keys()
    assert all(terms & set(word) for word in query_words(question)) == held
