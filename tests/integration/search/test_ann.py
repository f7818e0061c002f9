"""Large scopes search through their own index; what it cannot answer is scanned exactly."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from kb_resources.store import ann

from .conftest import World

WORDS = [f"w{n}" for n in range(60)]
SIZE = 300


def filled(world: World, scope: str | None = None, **values: Any) -> None:
    chance = random.Random(1)
    for start in range(0, SIZE, 100):
        texts = [" ".join(chance.choices(WORDS, k=8)) + f" n{start + n}" for n in range(100)]
        world.publish(f"d{start}", texts, scope=scope, **values)


def scans(world: World) -> int:
    """How often an index of this scope was searched; sessions report when they end."""
    world.database.close()
    with world.database.owner_session() as conn:
        others = (
            "select exists (select from pg_stat_activity where datname = current_database()"
            " and backend_type = 'client backend' and pid <> pg_backend_pid())"
        )
        deadline = time.monotonic() + 60
        while conn.execute(others).fetchone() == (True,):
            assert time.monotonic() < deadline, "a session did not end"
            time.sleep(0.02)
        (count,) = conn.execute(
            "select coalesce(sum(idx_scan), 0) from pg_stat_user_indexes where indexrelname ~ %s",
            [f"^embedding_ann_[0-9]+_{world.scope_id}$"],
        ).fetchone()
    return int(count)


def maintain(world: World, **values: Any) -> list[str]:
    """Actions taken for this scope."""
    with world.database.owner_session() as conn:
        changes = ann.maintain(conn, **values)
    return [change.action for change in changes if change.scope_id == world.scope_id]


def rankings(world: World) -> list[list[str]]:
    chance = random.Random(2)
    found = []
    for _ in range(20):
        query = " ".join(chance.choices(WORDS, k=4))
        hits = world.search(query, mode="vector", k=10).hits
        found.append([f"{hit.document_id}/{hit.passage_id}" for hit in hits])
    return found


@pytest.mark.requirement("O-30")
def test_an_indexed_scope_ranks_as_the_exact_scan_does(world: World) -> None:
    filled(world)
    exact = rankings(world)
    assert maintain(world, limit=200) == ["create"]
    before = scans(world)
    indexed = rankings(world)
    assert scans(world) - before == 20
    recall = [len(set(a) & set(b)) / 10 for a, b in zip(exact, indexed, strict=True)]
    assert sum(recall) / len(recall) >= 0.98
    maintain(world, limit=10**9)


def test_a_filter_that_leaves_too_few_is_answered_exactly(world: World) -> None:
    filled(world, audiences=["board"])
    world.publish("open", [f"w1 w2 open {n}" for n in range(7)])
    maintain(world, limit=200)
    assert world.found("w1 w2", mode="vector", k=100) == ["open"] * 7
    assert len(world.found("w1 w2", mode="vector", k=100, audiences=["board"])) == 100
    maintain(world, limit=10**9)


def test_row_level_security_holds_for_the_index_too(world: World) -> None:
    other = f"{world.scope}-2"
    filled(world)
    filled(world, scope=other)
    maintain(world, limit=200)
    hits = world.search("w1", mode="vector", k=100).hits
    assert {hit.scope for hit in hits} == {world.scope}
    maintain(world, limit=10**9)


@pytest.mark.requirement("B-24")
def test_the_settings_of_the_index_scan_end_with_it(world: World) -> None:
    filled(world)
    maintain(world, limit=200)
    shown = "select current_setting('hnsw.iterative_scan'), current_setting('enable_sort')"
    with world.database.transaction("app", world.scope) as conn:
        conn.execute("select '[1]'::halfvec")  # the first use loads pgvector and its settings
        before = conn.execute(shown).fetchone()
        conn.execute(
            "select * from kb.search(array[%s], '{}', '{}', %s::halfvec, 1, null, now(), false,"
            " 8, 100, false, null, null, null, null, null, 1)",
            [world.scope_id, "[1" + ",0" * 15 + "]"],
        )
        assert conn.execute(shown).fetchone() == before
    maintain(world, limit=10**9)


def test_indexes_come_and_go_with_the_scopes_size(world: World) -> None:
    filled(world)
    assert maintain(world, limit=301) == []
    assert maintain(world, limit=300) == ["create"]
    assert maintain(world, limit=300) == []
    assert maintain(world, limit=400) == []
    assert maintain(world, limit=500) == ["drop"]
    assert maintain(world, limit=300, most=0) == []


def test_an_index_left_invalid_is_built_again_and_not_used_until_then(world: World) -> None:
    filled(world)
    maintain(world, limit=200)
    with world.database.owner_session() as conn:
        conn.execute(
            "update pg_index set indisvalid = false where indexrelid ="
            " (select oid from pg_class where relname ~ %s)",
            [f"^embedding_ann_[0-9]+_{world.scope_id}$"],
        )
    assert len(world.found("w1", mode="vector", k=10)) == 10
    assert maintain(world, limit=200) == ["rebuild"]
    assert maintain(world, limit=200) == []
    maintain(world, limit=10**9)


def test_strays_are_dropped(world: World) -> None:
    filled(world)
    maintain(world, limit=200)
    with world.database.owner_session() as conn:
        conn.execute("delete from kb.embedding where scope_id = %s", [world.scope_id])
        assert [change.action for change in ann.plan(conn, limit=200)] == ["drop"]
        ann.maintain(conn, limit=200)
        assert ann.plan(conn, limit=200) == []
