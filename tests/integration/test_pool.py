"""Transactions by role and scope: what they carry, what they leave behind, how they fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg import sql as pgsql
from psycopg.conninfo import make_conninfo

from kb_resources.errors import (
    ConflictError,
    InputError,
    IntegrityError,
    KbError,
    NotFound,
    PolicyError,
    ScopeRequired,
    UnavailableError,
)
from kb_resources.store.pool import Database, Timeouts
from kb_resources.store.roles import Role
from kb_resources.store.search import visible_scopes
from kb_resources.store.server import EmbeddedServer

NAME = "kb_shared"
WHO = "select current_user::text, current_setting('app.scope', true)"


@pytest.fixture
def database(shared_database: Database) -> Database:
    """Nothing here leaves rows or tables behind."""
    return shared_database


@pytest.fixture(params=["embedded", "external", "external with own logins"])
def any_database(
    request: pytest.FixtureRequest, server: EmbeddedServer, shared_database: Database
) -> Iterator[Database]:
    """The three ways to reach a database."""
    owner, pipeline, app = (server.dsn(role, NAME) for role in ("owner", "pipeline", "app"))
    if request.param == "embedded":
        opened = Database.embedded(server, dbname=NAME)
    elif request.param == "external":
        opened = Database.external(owner)
    else:
        opened = Database.external(owner, pipeline_dsn=pipeline, app_dsn=app)
    with opened:
        yield opened


@pytest.mark.parametrize(
    ("role", "user"), [("owner", "kb_owner"), ("pipeline", "kb_pipeline"), ("app", "kb_app")]
)
def test_a_transaction_acts_as_its_role_in_its_scope(
    any_database: Database, role: Role, user: str
) -> None:
    with any_database.transaction(role, "acme") as conn:
        assert conn.execute(WHO).fetchone() == (user, "acme")


@pytest.mark.requirement("O-35")
def test_nothing_of_a_transaction_reaches_the_next_user_of_the_connection(
    server: EmbeddedServer, shared_database: Database
) -> None:
    quick = Timeouts(statement_s=7, lock_s=7, idle_s=7)
    with Database.external(server.dsn("owner", NAME), max_size=1) as database:
        with database.transaction("app", "acme", timeouts=quick) as conn:
            backend = conn.info.backend_pid
            conn.execute("select 1")
        with pytest.raises(KbError), database.transaction("app", "acme", timeouts=quick) as conn:
            conn.execute("select 1/0")
        with database._checked_out("app") as conn:
            assert conn.info.backend_pid == backend
            assert conn.execute(WHO).fetchone() == ("kb_owner", "")
            for setting in ("statement_timeout", "lock_timeout"):
                assert conn.execute(f"show {setting}").fetchone() == ("0",)


def test_several_scopes_are_a_list_and_none_is_none(database: Database) -> None:
    with database.transaction("app", ["acme", "zenith"]) as conn:
        assert conn.execute(WHO).fetchone() == ("kb_app", "acme,zenith")
    with database.transaction("app") as conn:
        assert conn.execute(WHO).fetchone() == ("kb_app", "")


@pytest.mark.parametrize("scope", ["a,b", "Acme", "a' or 'x", "a b"])
def test_a_malformed_scope_never_reaches_the_database(database: Database, scope: str) -> None:
    with pytest.raises(InputError), database.transaction("app", scope):
        pytest.fail("the transaction was opened")


def test_an_empty_scope_name_is_refused_and_not_taken_for_none(database: Database) -> None:
    with pytest.raises(ScopeRequired), database.transaction("app", ""):
        pytest.fail("the transaction was opened")


def test_the_block_commits_and_an_error_rolls_back(database: Database) -> None:
    with database.transaction("owner") as conn:
        conn.execute("create table kept (x int)")
    with suppress(RuntimeError), database.transaction("owner") as conn:
        conn.execute("insert into kept values (1)")
        raise RuntimeError
    with database.transaction("owner") as conn:
        assert conn.execute("select count(*) from kept").fetchone() == (0,)
        conn.execute("drop table kept")


def test_times_are_utc_and_a_reader_prepares_the_call_of_a_search_alone(
    server: EmbeddedServer, database_name: str
) -> None:
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as admin:
        where = pgsql.Identifier(database_name)
        admin.execute(pgsql.SQL("alter database {} set timezone = 'Asia/Tokyo'").format(where))
    with (
        Database.embedded(server, dbname=database_name) as database,
        database.transaction("app", "acme") as conn,
    ):
        (now,) = conn.execute("select now()").fetchone() or (None,)
        assert str(getattr(now, "tzinfo", None)) == "UTC"
        for _ in range(12):
            conn.execute("select %s::int", [1])
        assert conn.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        for _ in range(2):
            visible_scopes(conn, ["acme"])
        prepared = conn.execute("select statement from pg_prepared_statements").fetchall()
        assert [text for (text,) in prepared] == ["select * from kb.search_scopes($1::text[])"]
        name = conn.execute("select current_setting('application_name')").fetchone()
        assert name == ("kb",)


def test_the_lines_statements_are_prepared_and_one_overtaken_by_a_migration_is_a_conflict(
    database: Database,
) -> None:
    with database.session("owner") as owner:
        owner.execute("create table kb.moved (a int)")
        owner.execute("grant select on kb.moved to kb_pipeline")
        try:
            _moved(database)
            owner.execute("alter table kb.moved add b int")
            with pytest.raises(ConflictError) as caught:
                _moved(database)
            assert caught.value.code == "migrated"
            _moved(database)
        finally:
            owner.execute("drop table kb.moved")


def _moved(database: Database) -> None:
    with database.transaction("pipeline") as conn:
        for number in range(6):
            conn.execute("select * from kb.moved where a = %s", [number])
        found = conn.execute("select count(*) > 0 from pg_prepared_statements").fetchone()
        assert found == (True,)


RAISE = (
    "do $$ begin raise exception 'the server says so' using errcode = '{}', hint = 'Do it.'; end $$"
)


@pytest.mark.parametrize(
    ("state", "kind", "code", "retryable"),
    [
        ("KB001", PolicyError, "gate", False),
        ("KB002", PolicyError, "append_only", False),
        ("KB003", NotFound, "not_found", False),
        ("KB004", ConflictError, "not_ready", True),
        ("KB999", PolicyError, "refused", False),
        ("23505", IntegrityError, "integrity", False),
        ("23P01", ConflictError, "conflict", True),
        ("22P02", InputError, "invalid_input", False),
        ("40001", ConflictError, "conflict", True),
        ("40P01", ConflictError, "conflict", True),
        ("42501", PolicyError, "no_right", False),
        ("53100", UnavailableError, "disk_full", True),
        ("53200", UnavailableError, "out_of_resources", True),
        ("53300", UnavailableError, "too_many_connections", True),
        ("55P03", ConflictError, "locked", True),
        ("57P01", UnavailableError, "unavailable", True),
        ("57P03", UnavailableError, "unavailable", True),
        ("58030", UnavailableError, "server_disk", True),
        ("XX001", IntegrityError, "server_damage", False),
        ("42601", KbError, "database_error", False),
    ],
)
def test_each_kind_of_server_error_becomes_one_of_ours(
    database: Database, state: str, kind: type[KbError], code: str, retryable: bool
) -> None:
    with pytest.raises(KbError) as caught, database.transaction("owner") as conn:
        conn.execute(RAISE.format(state))
    error = caught.value
    assert type(error) is kind
    assert (error.code, error.retryable) == (code, retryable)
    assert error.message == "the server says so."
    assert isinstance(error.__cause__, psycopg.Error)
    assert (error.next_step == "Do it.") == state.startswith("KB")


def test_a_statement_that_runs_too_long_is_ended(database: Database) -> None:
    brief = Timeouts(statement_s=0.1)
    with pytest.raises(UnavailableError) as caught:  # noqa: SIM117 (the error is the outer's)
        with database.transaction("owner", timeouts=brief) as conn:
            conn.execute("select pg_sleep(30)")
    assert caught.value.code == "timeout"


def test_a_wait_for_a_lock_that_is_held_too_long_is_ended(database: Database) -> None:
    brief = Timeouts(lock_s=0.1)
    with database.transaction("owner") as holder:
        holder.execute("select pg_advisory_xact_lock(1)")
        with pytest.raises(ConflictError) as caught:  # noqa: SIM117 (the error is the outer's)
            with database.transaction("owner", timeouts=brief) as conn:
                conn.execute("select pg_advisory_xact_lock(1)")
    assert caught.value.code == "locked"


def test_a_real_deadlock_is_a_conflict_for_one_and_success_for_the_other(
    database: Database,
) -> None:
    outcomes: list[str] = []
    both_hold = threading.Barrier(2)

    def take(first: int, second: int) -> None:
        try:
            with database.transaction("owner") as conn:
                conn.execute("select pg_advisory_xact_lock(%s)", [first])
                both_hold.wait(10)
                conn.execute("select pg_advisory_xact_lock(%s)", [second])
            outcomes.append("done")
        except ConflictError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=take, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict", "done"]


def test_a_busy_pool_says_so(server: EmbeddedServer, shared_database: Database) -> None:
    limits = Timeouts(checkout_s=0.2)
    with (
        Database.embedded(server, dbname=NAME, timeouts=limits, max_size=1) as database,
        database.transaction("app", "acme"),
    ):
        with pytest.raises(UnavailableError) as caught, database.transaction("app", "acme"):
            pytest.fail("a second connection was given")
        assert caught.value.code == "pool_exhausted"


def test_a_session_of_the_owner_is_outside_of_transactions_and_closed_afterwards(
    database: Database,
) -> None:
    with database.owner_session() as conn:
        conn.execute("create table indexed (x int)")
        conn.execute("create index concurrently indexed_x on indexed (x)")
        conn.execute("drop table indexed")
    assert conn.closed
    with pytest.raises(KbError, match="does not exist"), database.owner_session() as conn:
        conn.execute("select * from nowhere")


@pytest.mark.requirement("W-45")
def test_a_database_that_is_away_is_reported_at_once(server: EmbeddedServer) -> None:
    gone = make_conninfo(server.dsn(), host="/no/such/folder")
    before = time.monotonic()
    with Database.external(gone) as database:
        for role in ("owner", "app"):
            with pytest.raises(UnavailableError) as caught, database.transaction(role, "acme"):
                pytest.fail("there is nothing to connect to")
            assert caught.value.code == "unavailable"
            assert caught.value.next_step
    assert time.monotonic() - before < 2


def test_a_database_that_does_not_exist_is_reported(server: EmbeddedServer) -> None:
    with (
        Database.embedded(server, dbname="no_such_database") as database,
        pytest.raises(UnavailableError, match="no_such_database"),
        database.transaction("owner"),
    ):
        pytest.fail("there is nothing to connect to")


def test_pools_live_through_a_restart_of_the_server(
    used_server: Callable[..., EmbeddedServer],
) -> None:
    server = used_server()
    server.start()
    with Database.embedded(server) as database:

        def lose_the_server_halfway() -> None:
            with database.transaction("owner") as conn:
                conn.execute("insert into t values (1)")
                server.stop()
                conn.execute("insert into t values (2)")

        def count() -> object:
            with database.transaction("owner") as conn:
                return conn.execute("select count(*) from t").fetchone()

        with database.owner_session() as conn:
            conn.execute("drop table if exists t")
            conn.execute("create table t (x int)")
        assert count() == (0,)
        with pytest.raises(UnavailableError):
            lose_the_server_halfway()
        with pytest.raises(UnavailableError, match="onnecting to the database failed"):
            count()
        server.start()
        assert count() == (0,)


def test_closing_closes_what_is_idle_now_and_what_is_lent_later(database: Database) -> None:
    with database.transaction("owner") as lent:
        with database.transaction("owner") as other:
            pass
        database.close()
        assert other.closed
        assert not lent.closed
    assert lent.closed
    with database.transaction("owner") as conn:
        assert conn.execute("select 1").fetchone() == (1,)


def test_threads_share_as_many_connections_as_allowed(
    server: EmbeddedServer, shared_database: Database
) -> None:
    backends: set[int] = set()
    with Database.embedded(server, dbname=NAME, max_size=3) as database:

        def work() -> None:
            for _ in range(20):
                with database.transaction("app", "acme") as conn:
                    backends.add(conn.info.backend_pid)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert 1 <= len(backends) <= 3


def test_a_role_that_no_connection_leads_to_is_refused_by_name(
    server: EmbeddedServer, shared_database: Database
) -> None:
    with Database.external("", app_dsn=server.dsn("app", NAME)) as database:
        with database.transaction("app", "acme") as conn:
            assert conn.execute(WHO).fetchone() == ("kb_app", "acme")
        with (
            pytest.raises(PolicyError, match="pipeline role") as refused,
            database.transaction("pipeline"),
        ):
            pass
        assert "KB_PIPELINE_DATABASE_URL" in refused.value.next_step
