"""What the logs hold: written with the search or not at all, no words, for one scope alone."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from kb.reader import Reader
from kb_resources.answer.audit import trace
from kb_resources.errors import InputError, KbError, PolicyError, ScopeRequired
from kb_resources.retrieve.log import QuestionKey
from kb_resources.store import logs
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer
from tests.integration.answer.conftest import KEY, LOST
from tests.integration.answer.logged_searches import ADMIN, WHO, logged, rows, search
from tests.integration.search.conftest import TinyEmbedder, World


@pytest.mark.requirement("O-48")
def test_a_search_writes_one_row_of_what_it_reached(library: World) -> None:
    found = logged(library).search("lost device", scope=library.scope, principal=WHO, k=2)
    (row,) = rows(library, found.correlation_id)
    assert row["actor"] == "test:ann"
    assert row["scopes"] == [library.scope]
    assert (row["mode"], row["model_id"], row["k"]) == ("hybrid", TinyEmbedder.model_id, 2)
    assert row["question_digest"] == KEY.digest("lost device")
    assert [
        (h["rank"], h["document_id"], h["version"], h["digest"], h["passage_id"])
        for h in row["hits"]
    ] == [(h.rank, h.document_id, h.version, h.digest, h.passage_id) for h in found.hits]


def test_a_caller_names_the_correlation_and_a_bad_name_is_refused(library: World) -> None:
    assert search(library, "lost device", correlation_id="run:42") == "run:42"
    assert len(rows(library, "run:42")) == 1
    for bad in ("", "a b", "x" * 200, "ü", "-x"):
        with pytest.raises(InputError):
            search(library, "lost device", correlation_id=bad)


@pytest.mark.requirement("O-48")
def test_the_words_of_a_question_are_nowhere_in_the_database(
    library: World, server: EmbeddedServer, reader: Reader
) -> None:
    word = "xylophonequestion"
    search(library, f"lost device {word}")
    reader.ask(f"lost device {word}", scope=library.scope, principal=WHO)
    with library.pipeline() as conn:
        name = conn.execute("select current_database()").fetchone()[0]
    with psycopg.connect(server.dsn("owner", name)) as conn:
        tables = conn.execute(
            "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'kb'"
        ).fetchall()
        dump = io.BytesIO()
        for (table,) in tables:
            with conn.cursor().copy(f"copy (select * from {table}) to stdout") as out:
                for part in out:
                    dump.write(bytes(part))
    assert LOST.encode() in dump.getvalue()
    assert word.encode() not in dump.getvalue()


def test_a_digest_says_nothing_without_its_key(library: World) -> None:
    other = QuestionKey(bytes(32))
    assert other.digest("lost device") != KEY.digest("lost device")
    assert other.key_id != KEY.key_id
    assert KEY.digest(" lost device\n") == KEY.digest("lost device")
    assert "secret" not in repr(KEY)


def test_a_key_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "home" / "question.key"
    first = QuestionKey.kept_in(file)
    assert QuestionKey.kept_in(file) == first
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["question.key"]
    file.write_text("short")
    with pytest.raises(InputError):
        QuestionKey.kept_in(file)
    with pytest.raises(InputError):
        QuestionKey.from_hex("abcd")


@pytest.mark.requirement("O-51")
@pytest.mark.parametrize("table", ["retrieval_log", "answer_log"])
def test_without_the_log_there_are_no_hits_and_no_answers(
    database: Database, server: EmbeddedServer, database_name: str, table: str
) -> None:
    world = World(database, "acme")
    world.publish("security", [LOST])
    reader = Reader(database, logged(world))
    with psycopg.connect(server.dsn("owner", database_name), autocommit=True) as conn:
        conn.execute(f"revoke insert on kb.{table} from kb_app")
    with pytest.raises(KbError):
        reader.ask("lost device", scope="acme", principal=WHO)
    if table == "retrieval_log":
        with pytest.raises(KbError):
            logged(world).search("lost device", scope="acme", principal=WHO)
    assert world.found("lost device") == ["security"]  # a search that keeps no log still works


@pytest.mark.requirement("O-50")
def test_the_log_of_a_scope_shows_to_that_scope_only(library: World) -> None:
    world, other = library, f"{library.scope}-other"
    world.publish("security", [LOST], scope=other)
    mine = search(world, "lost device")
    both = logged(world).search("lost device", scopes=[world.scope, other], principal=WHO)
    with world.database.transaction("app", other) as conn:
        assert logs.retrievals(conn, mine) == []
        assert logs.retrievals(conn, both.correlation_id) == []
    with world.database.transaction("app", None) as conn:
        assert logs.retrievals(conn, mine) == []
    with world.database.transaction("app", [world.scope, other]) as conn:
        assert len(logs.retrievals(conn, both.correlation_id)) == 1
    with pytest.raises(ScopeRequired):
        trace(world.database, mine, scope="", principal=ADMIN)


def test_the_reading_side_can_neither_change_nor_delete_a_row(library: World) -> None:
    made = search(library, "lost device")
    for statement in (
        "update kb.retrieval_log set actor = 'x' where correlation_id = %s",
        "delete from kb.retrieval_log where correlation_id = %s",
        "update kb.retrieval_log_default set actor = 'x' where correlation_id = %s",
    ):
        with pytest.raises(PolicyError), library.database.transaction("app", library.scope) as conn:
            conn.execute(statement, [made])
    forged = {"correlation_id": made, "scope_id": 10**6}
    with pytest.raises(KbError), library.database.transaction("app", library.scope) as conn:
        conn.execute(
            """insert into kb.answer_log (correlation_id, scope_ids, actor, answerer, abstained,
                 answer_digest, statements, rejected, calls, duration_s)
               values (%(correlation_id)s, array[%(scope_id)s], 'x', 'x', true, repeat('0', 64),
                 '[]', '[]', 0, 0)""",
            forged,
        )


def test_logs_lie_in_partitions_by_month_that_can_be_dropped(
    database: Database, server: EmbeddedServer, database_name: str
) -> None:
    world = World(database, "acme")
    world.publish("security", [LOST])
    made = search(world, "lost device")
    year = timedelta(days=366)
    with database.transaction("pipeline") as conn:
        assert logs.ensure_partitions(conn, datetime.now(UTC) + year, 2) == 6
        assert logs.ensure_partitions(conn, datetime.now(UTC) + year, 2) == 0
    with psycopg.connect(server.dsn("owner", database_name), autocommit=True) as conn:
        conn.execute(
            "insert into kb.retrieval_log select correlation_id, '2020-05-05', retrieval_id, "
            "scope_ids, actor, audiences, question_digest, key_id, asked_mode, mode, k, as_of, "
            "historical, filters, model_id, analyzer, hits from kb.retrieval_log"
        )
        assert conn.execute("select count(*) from kb.retrieval_log_default").fetchone() == (1,)
    with database.transaction("pipeline") as conn:
        assert logs.ensure_partitions(conn, datetime(2020, 5, 1, tzinfo=UTC), 1) == 3
    assert len(rows(world, made)) == 2
    with database.transaction("pipeline") as conn:
        assert logs.drop_partitions(conn, datetime(2020, 6, 1, tzinfo=UTC)) == 3
    assert len(rows(world, made)) == 1
    with database.transaction("pipeline") as conn:
        assert logs.drop_partitions(conn, datetime.now(UTC)) == 0


def test_every_table_with_rows_of_a_scope_has_row_level_security(world: World) -> None:
    with world.pipeline() as conn:
        open_tables = conn.execute(
            """select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
               where n.nspname = 'kb' and c.relkind in ('r', 'p') and not c.relrowsecurity
                 and c.relname ~ '_log|^citation'"""
        ).fetchall()
    assert open_tables == []
