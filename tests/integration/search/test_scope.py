"""A search names its scopes and stays in them; row security holds where a filter fails."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kb_resources.errors import NotFound, ScopeRequired
from kb_resources.lexical import analyze_query
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever
from kb_resources.store import passages

from .conftest import World


class NoDatabase:
    """Fails when a transaction is asked for."""

    def transaction(self, *_: object) -> None:
        raise AssertionError("a statement was sent")


@pytest.mark.requirement("O-16")
@pytest.mark.parametrize("scope", [None, ""])
def test_a_search_without_a_scope_is_refused_before_any_statement(scope: str | None) -> None:
    retriever = Retriever(NoDatabase())  # type: ignore[arg-type]
    with pytest.raises(ScopeRequired):
        retriever.search("x", principal=Principal("p"), scope=scope)
    with pytest.raises(ScopeRequired):
        retriever.search("x", principal=Principal("p"), scopes=[])
    with pytest.raises(ScopeRequired):
        retriever.passage("x", principal=Principal("p"), scope=scope)  # type: ignore[arg-type]


def test_an_unknown_scope_and_one_not_held_look_the_same(world: World) -> None:
    world.publish("doc", ["alpha"])
    messages = []
    for scope, principal in (
        ("nowhere", Principal("p")),
        (world.scope, Principal("p", scopes=frozenset({"other"}))),
    ):
        with pytest.raises(NotFound) as caught:
            world.search("alpha", scope=scope, principal=principal)
        messages.append(str(caught.value).replace(scope, "X"))
    assert messages[0] == messages[1]


@pytest.mark.requirement("W-28", "W-48")
def test_scopes_do_not_mix_and_several_are_searched_together(world: World) -> None:
    other = f"{world.scope}-2"
    world.publish("mine", ["alpha beta"])
    world.publish("theirs", ["alpha gamma"], scope=other)
    assert world.found("alpha") == ["mine"]
    hits = world.search("alpha", scopes=[world.scope, other]).hits
    assert {(hit.scope, hit.document_id) for hit in hits} == {
        (world.scope, "mine"),
        (other, "theirs"),
    }
    with pytest.raises(NotFound):
        world.search("alpha", scopes=[world.scope, "nowhere"])


@pytest.mark.requirement("O-19", "B-23")
def test_row_level_security_holds_where_the_filter_is_missing(world: World) -> None:
    other = f"{world.scope}-2"
    world.publish("mine", ["alpha beta"])
    row, _ = world.stage("theirs", ["alpha gamma"], scope=other)
    world.publish("theirs", ["alpha gamma"], scope=other)
    with world.pipeline() as conn:
        passages.refresh_statistics(conn, world.scope_id)
        passages.refresh_statistics(conn, row.scope_id)
    tables = ("passage", "lex", "embedding", "lexicon", "term", "document", "version", "validity")
    for table in tables:
        query = f"select distinct scope_id from kb.{table}"
        with world.database.transaction("app", world.scope) as conn:
            assert conn.execute(query).fetchall() == [(world.scope_id,)], table
        with world.database.transaction("app") as conn:
            assert conn.execute(query).fetchall() == [], table


def test_a_scope_id_of_another_scope_in_the_statement_finds_nothing(world: World) -> None:
    from kb_resources.store import search as statements

    other = f"{world.scope}-2"
    world.publish("mine", ["alpha beta"])
    row, _ = world.stage("theirs", ["alpha gamma"], scope=other)
    world.publish("theirs", ["alpha gamma"], scope=other)
    with world.database.transaction("app", world.scope) as conn:
        found = statements.run(
            conn,
            statements.SearchQuery(
                scope_ids=[world.scope_id, row.scope_id],
                lexemes=analyze_query("alpha"),
                vector=world.embedder.embed(["alpha"], "query")[0],
                model_key=1,
                audiences=None,
                as_of=datetime.now(UTC),
                historical=True,
                k=10,
                candidates=100,
            ),
        )
    assert [item["document_id"] for item in found] == ["mine"]


def test_a_small_scope_beside_a_large_one_gives_all_its_rows(world: World) -> None:
    large = f"{world.scope}-2"
    texts = [f"shared words number {n} in a large scope" for n in range(400)]
    world.publish("big", texts, scope=large)
    world.publish("small", [f"shared words in the small scope {n}" for n in range(10)])
    for mode in ("hybrid", "text", "vector"):
        hits = world.search("shared words", mode=mode, k=100).hits
        assert len(hits) == 10
        assert {hit.document_id for hit in hits} == {"small"}


@pytest.mark.requirement("W-46")
def test_the_text_list_is_read_through_the_gin_index_under_row_level_security(
    world: World,
) -> None:
    world.publish("big", [f"shared word{n}x and word{n % 7}y" for n in range(600)])
    with world.database.owner_session() as conn:
        conn.execute("analyze kb.lex")
    with world.database.transaction("app", world.scope) as conn:
        conn.execute("set local enable_seqscan = off")
        plan = conn.execute(
            "explain select x.passage_key from kb.lex x where x.scope_id + 0 = %(scope)s"
            " and x.keys && array(select kb.scoped_key(%(scope)s, k)"
            " from unnest(%(keys)s::int[]) k)",
            {"scope": world.scope_id, "keys": list(analyze_query("word77x"))},
        ).fetchall()
    assert "Bitmap Index Scan on lex_keys" in "\n".join(line for (line,) in plan)
