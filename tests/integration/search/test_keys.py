"""Version, passage and search row belong together, as foreign keys would keep them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kb_resources.errors import IntegrityError, KbError, PolicyError

from .conftest import World

NOWHERE = 10**15
CHUNK = (
    "ordinal, scope_id, passage_id, context, heading_path, byte_start, byte_end, char_start,"
    " char_end, content_hash, embed_hash, token_count"
)
SEARCH = "scope_id, valid_from, audiences"


def copied(table: str, key: str, columns: str, source: str, values: str = "") -> str:
    """A statement that repeats the scope's rows under another key."""
    return (
        f"insert into kb.{table} ({key}, {columns}) select %(key)s, {values or columns}"
        f" from kb.{source} where scope_id = %(scope_id)s limit 1"
    )


ROWS = {
    "staged_chunk": copied("staged_chunk", "version_key", CHUNK, "passage"),
    "staged_vector": copied(
        *("staged_vector", "version_key", "model_key, embed_hash, carried, vec", "embedding"),
        "model_key, passage_key::text, false, vec",
    ),
    "passage": copied("passage", "version_key", f"{CHUNK}, text, language", "passage"),
    "lex": copied("lex", "passage_key", f"{SEARCH}, bm, keys", "lex"),
    "embedding": copied("embedding", "passage_key", f"{SEARCH}, model_key, vec", "embedding"),
}
ANEW = (
    "with old as (delete from kb.lex where scope_id = %(scope_id)s returning *)"
    " insert into kb.lex select * from old"
)
AWAY = "delete from kb.passage where scope_id = %(scope_id)s"


def left(world: World) -> Any:
    """How many rows the scope has in each of the tables."""
    return world.ask(
        "select (select count(*) from kb.passage where scope_id = %(scope_id)s),"
        " (select count(*) from kb.lex where scope_id = %(scope_id)s),"
        " (select count(*) from kb.embedding where scope_id = %(scope_id)s),"
        " (select count(*) from kb.staged_chunk where scope_id = %(scope_id)s),"
        " (select count(*) from kb.staged_vector join kb.version using (version_key)"
        "   where scope_id = %(scope_id)s)"
    )


@pytest.mark.requirement("P-03")
@pytest.mark.parametrize("table", ROWS)
def test_no_row_without_what_it_belongs_to(world: World, table: str) -> None:
    world.publish("leave", ["One.", "Two."])
    given = {"key": NOWHERE, "scope_id": world.scope_id}
    with (
        pytest.raises((IntegrityError, PolicyError), match=r"version|passage"),
        world.pipeline() as conn,
    ):
        conn.execute(ROWS[table], given)
    assert left(world) == (2, 2, 2, 0, 0)


def test_rows_of_two_versions_in_one_statement_are_each_looked_at(world: World) -> None:
    world.publish("leave", ["One.", "Two."])
    world.publish("travel", ["Three."])
    given = {"scope_id": world.scope_id}
    with world.pipeline() as conn:
        assert conn.execute(ANEW, given).rowcount == 3
    with pytest.raises(PolicyError, match="search row"), world.pipeline() as conn:
        conn.execute(
            "with old as (delete from kb.lex where scope_id = %(scope_id)s returning *)"
            " insert into kb.lex (passage_key, scope_id, valid_from, audiences, bm, keys)"
            " select passage_key, scope_id, valid_from, case when passage_key ="
            " (select max(passage_key) from old) then '{x}' else audiences end, bm, keys from old",
            given,
        )
    assert left(world)[1] == 3


@pytest.mark.parametrize(
    ("table", "kept"), [("version", (0, 0, 0, 0, 0)), ("passage", (0, 0, 0, 2, 2))]
)
def test_whoever_deletes_by_hand_leaves_no_row_behind(
    world: World, table: str, kept: tuple[int, ...]
) -> None:
    world.publish("leave", ["One.", "Two."])
    row, chunks = world.stage("leave", ["One.", "Two."])
    world.embed(row, chunks)
    assert left(world) == (2, 2, 2, 2, 2)
    with world.database.transaction("owner") as conn:
        conn.execute(f"delete from kb.{table} where scope_id = %s", [world.scope_id])
    assert left(world) == kept


@pytest.mark.requirement("O-20")
@pytest.mark.parametrize(("first", "second"), [(ANEW, AWAY), (AWAY, ANEW)])
def test_who_inserts_and_who_deletes_wait_for_each_other(
    world: World, first: str, second: str
) -> None:
    world.publish("leave", ["One.", "Two."])
    given = {"scope_id": world.scope_id}
    with world.pipeline() as held:
        held.execute(first, given)
        with pytest.raises(KbError) as caught, world.pipeline() as conn:  # noqa: PT012
            conn.execute("set local lock_timeout = '50ms'")
            conn.execute(second, given)
    assert isinstance(caught.value.__cause__, psycopg.errors.LockNotAvailable)
