"""Rebuilding lexical rows for another analyzer, without a gap for readers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from kb_resources.errors import UnavailableError
from kb_resources.lexical import ANALYZER_VERSION, analyze
from kb_resources.store import lexicon
from kb_resources.store.lexicon import StoredText
from kb_resources.store.passages import LexicalRow

from .conftest import START, World


def current(text: StoredText) -> LexicalRow:
    found = analyze(text.text, text.language, context=text.context)
    return LexicalRow(0, found.terms, found.length, ANALYZER_VERSION)


def older(text: StoredText) -> LexicalRow:
    """An analyzer that knows no stems."""
    return replace(current(replace(text, language="und")), analyzer="kb-0/u1")


def lexical_rows(world: World) -> object:
    return world.ask(
        "select array_agg((p.passage_id, l.bm, l.keys, l.valid_from, l.valid_until, l.earlier,"
        " l.audiences)::text order by p.passage_id, p.version_key)"
        " from kb.lex l join kb.passage p using (passage_key) where p.scope_id = %(scope_id)s"
    )


def test_a_rebuild_changes_the_words_and_nothing_else(world: World) -> None:
    world.publish("a", ["many contracts"], audiences=["board"])
    world.publish("b", ["one contract"])
    world.publish("b", ["other words"], valid_from=START + timedelta(days=1))
    world.publish("b", ["one contract"], valid_from=START + timedelta(days=2))
    with world.pipeline() as conn:
        lexicon.rebuild(conn, world.scope_id, current)
    before = lexical_rows(world)
    with world.pipeline() as conn:
        assert lexicon.rebuild(conn, world.scope_id, older) == 3
    assert lexical_rows(world) != before
    with world.pipeline() as conn:
        assert lexicon.rebuild(conn, world.scope_id, current) == 3
    assert lexical_rows(world) == before
    assert set(world.found("contracts", mode="text", audiences=["board"])) == {"a", "b"}


def test_a_scope_of_another_analyzer_says_so_until_it_is_rebuilt(world: World) -> None:
    world.publish("doc", ["many contracts"])
    with world.pipeline() as conn:
        lexicon.rebuild(conn, world.scope_id, older)
    with pytest.raises(UnavailableError, match="analyzer") as caught:
        world.search("contract")
    assert caught.value.code == "analyzer_differs"
    with world.pipeline() as conn:
        assert (world.scope_id, world.scope) in lexicon.outdated(conn, ANALYZER_VERSION)
        lexicon.rebuild(conn, world.scope_id, current)
    assert world.found("contract") == ["doc"]


def test_a_rebuild_measures_the_average_length(world: World) -> None:
    world.publish("doc", ["lantern " * 300, "window " * 300])
    with world.pipeline() as conn:
        lexicon.rebuild(conn, world.scope_id, current)
    assert world.ask("select average_length from kb.lexicon where scope_id = %(scope_id)s") == (
        300,
    )


def test_an_empty_scope_is_left_alone(world: World) -> None:
    world.stage("doc", ["text"])
    with world.pipeline() as conn:
        assert lexicon.rebuild(conn, world.scope_id, current) == 0
