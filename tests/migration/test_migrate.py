"""Migrations: applied once, in order, whole, by many at once, after any crash; and printed."""

from __future__ import annotations

import multiprocessing
import random
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from kb_resources.errors import ConflictError, IntegrityError, KbError, PolicyError
from kb_resources.store.migrate import ddl, extension_ddl, migrate, pending
from kb_resources.store.migration_files import load_migrations
from kb_resources.store.server import EmbeddedServer
from kb_resources.store.server_binaries import wheel_bin_dir

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["kb_resources.store.server", "kb_resources.store.migrate"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two small migrations."""
    (tmp_path / "0001_first.sql").write_text("create table kb.a (x int);\n")
    (tmp_path / "0002_second.sql").write_text("create table kb.b (x int);\n")
    return tmp_path


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as conn:
        row = conn.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def tables(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        found = conn.execute("select tablename from pg_tables where schemaname = 'kb' order by 1")
        return [row[0] for row in found.fetchall() if row[0] != "schema_migration"]


def wait_for(dsn: str, query: str) -> None:
    deadline = time.monotonic() + 20
    while not ask(dsn, f"select exists ({query})"):
        assert time.monotonic() < deadline, f"never came true: {query}"
        time.sleep(0.02)


def labels(applied: object) -> list[str]:
    return [migration.label for migration in applied]  # type: ignore[attr-defined]


def test_the_shipped_migrations_apply_once(empty_database: str) -> None:
    shipped = load_migrations()
    assert len(shipped) >= 2
    assert pending(empty_database) == shipped
    assert migrate(empty_database) == shipped
    assert pending(empty_database) == ()
    assert migrate(empty_database) == ()


def test_pending_changes_nothing(empty_database: str, folder: Path) -> None:
    pending(empty_database, folder=folder)
    assert ask(empty_database, "select to_regnamespace('kb') is null")


def run_psql(dsn: str, script: str) -> None:
    program = wheel_bin_dir() / "psql"
    subprocess.run(
        [program, dsn, "-X", "-q", "-v", "ON_ERROR_STOP=1"], input=script, text=True, check=True
    )


def dump(dsn: str) -> str:
    program = wheel_bin_dir() / "pg_dump"
    done = subprocess.run(
        [program, "--schema-only", dsn], capture_output=True, text=True, check=True
    )
    # Each dump has a nonce of its own in \restrict and \unrestrict.
    return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)


def test_the_printed_schema_applies_by_psql_and_is_the_migrated_one(
    server: EmbeddedServer, empty_database: str, template_database: str
) -> None:
    run_psql(empty_database, extension_ddl())
    run_psql(empty_database, ddl())
    assert pending(empty_database) == ()
    assert migrate(empty_database) == ()
    assert dump(empty_database) == dump(server.dsn("owner", template_database))


def test_no_privileged_statement_is_printed_with_the_schema() -> None:
    assert "create extension" in extension_ddl().lower()
    assert not re.search(r"^\s*create\s+extension", ddl(), re.IGNORECASE | re.MULTILINE)


def test_what_is_new_is_applied_and_what_was_applied_is_not(
    empty_database: str, folder: Path
) -> None:
    migrate(empty_database, folder=folder)
    (folder / "0004_fourth.sql").write_text("create table kb.d (x int)")
    assert labels(migrate(empty_database, folder=folder)) == ["0004_fourth"]
    assert tables(empty_database) == ["a", "b", "d"]


def test_an_open_connection_is_handed_back_as_it_was(empty_database: str, folder: Path) -> None:
    with psycopg.connect(empty_database) as conn:
        assert labels(migrate(conn, folder=folder)) == ["0001_first", "0002_second"]
        assert not conn.autocommit
        assert conn.execute("select count(*) from kb.a").fetchone() == (0,)


def test_racing_migrators_apply_each_file_once(empty_database: str) -> None:
    racers = [_context.Process(target=migrate, args=(empty_database,)) for _ in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
    assert [racer.exitcode for racer in racers] == [0] * 4
    assert pending(empty_database) == ()


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.long)])
def test_a_migrator_killed_at_any_moment_leaves_whole_files_only(
    server: EmbeddedServer, rounds: int
) -> None:
    seeded = random.Random(rounds)
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as admin:
        for _ in range(rounds):
            admin.execute("create database killed")
            dsn = server.dsn("owner", "killed")
            victim = _context.Process(target=migrate, args=(dsn,))
            victim.start()
            time.sleep(seeded.uniform(0.0, 0.6))
            victim.kill()
            victim.join()
            migrate(dsn)
            assert pending(dsn) == ()
            admin.execute("drop database killed with (force)")


def test_a_killed_migrators_work_is_rolled_back_and_its_lock_is_free(
    empty_database: str, folder: Path
) -> None:
    slow = folder / "0002_second.sql"
    slow.write_text("create table kb.b (x int);\nselect pg_sleep(1.5);\ncreate table kb.c (x int);")
    victim = _context.Process(target=migrate, args=(empty_database,), kwargs={"folder": folder})
    victim.start()
    wait_for(empty_database, "select from pg_stat_activity where wait_event = 'PgSleep'")
    victim.kill()
    victim.join()
    assert tables(empty_database) == ["a"]
    assert labels(migrate(empty_database, folder=folder)) == ["0002_second"]
    assert tables(empty_database) == ["a", "b", "c"]


def test_a_failing_migration_is_named_and_leaves_nothing_behind(
    empty_database: str, folder: Path
) -> None:
    (folder / "0002_second.sql").write_text("create table kb.b (x int); select 1/0;")
    with pytest.raises(KbError, match="Migration 0002_second failed: division by zero"):
        migrate(empty_database, folder=folder)
    assert tables(empty_database) == ["a"]
    assert labels(pending(empty_database, folder=folder)) == ["0002_second"]


def test_a_file_changed_after_it_was_applied_is_refused(empty_database: str, folder: Path) -> None:
    migrate(empty_database, folder=folder)
    (folder / "0001_first.sql").write_text("create table kb.a (x bigint);\n")
    for look in (migrate, pending):
        with pytest.raises(IntegrityError, match="0001_first changed") as caught:
            look(empty_database, folder=folder)
        assert caught.value.code == "migration_changed"


def test_line_ends_of_another_system_are_not_a_change(empty_database: str, folder: Path) -> None:
    migrate(empty_database, folder=folder)
    file = folder / "0001_first.sql"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    assert migrate(empty_database, folder=folder) == ()


def test_a_database_of_a_later_release_is_refused(empty_database: str, folder: Path) -> None:
    migrate(empty_database, folder=folder)
    (folder / "0002_second.sql").unlink()
    with pytest.raises(IntegrityError, match="0002_second") as caught:
        migrate(empty_database, folder=folder)
    assert caught.value.code == "schema_newer"


def test_a_migration_that_comes_too_late_is_refused(empty_database: str, folder: Path) -> None:
    first = (folder / "0001_first.sql").rename(folder / "kept")
    migrate(empty_database, folder=folder)
    first.rename(folder / "0001_first.sql")
    with pytest.raises(IntegrityError, match="0001_first would run after") as caught:
        migrate(empty_database, folder=folder)
    assert caught.value.code == "migration_order"


def test_waiting_for_another_migrator_ends(empty_database: str, folder: Path) -> None:
    (folder / "0001_first.sql").write_text("select pg_sleep(3)")
    other = threading.Thread(target=migrate, args=(empty_database,), kwargs={"folder": folder})
    other.start()
    wait_for(empty_database, "select from pg_stat_activity where wait_event = 'PgSleep'")
    with pytest.raises(ConflictError):
        migrate(empty_database, folder=folder, wait_s=0.2)
    other.join()


CONCURRENT = """\
-- no-transaction
-- Two statements; a semicolon in text; must not end one.
create index concurrently if not exists a_x on kb.a (x);
insert into kb.b select 1 where not exists (select from kb.b where x = 1 and ';' = ';');
"""
# The session that builds the index; its query starts with the file's comments.
BUILDING = (
    "pg_stat_activity where query like '%create index concurrently%' and pid <> pg_backend_pid()"
)


def index_valid(dsn: str) -> object:
    return ask(
        dsn,
        "select coalesce((select indisvalid from pg_index "
        "where indexrelid = to_regclass('kb.a_x')), false)",
    )


def test_a_file_without_transaction_runs_statement_by_statement(
    empty_database: str, folder: Path
) -> None:
    (folder / "0003_index.sql").write_text(CONCURRENT)
    migrate(empty_database, folder=folder)
    assert index_valid(empty_database)
    assert migrate(empty_database, folder=folder) == ()


def test_a_concurrent_build_that_was_killed_is_done_again(
    empty_database: str, folder: Path
) -> None:
    migrate(empty_database, folder=folder)
    (folder / "0003_index.sql").write_text(CONCURRENT)
    with psycopg.connect(empty_database) as blocker:
        blocker.execute("insert into kb.a values (1)")  # the build waits for this transaction
        victim = _context.Process(target=migrate, args=(empty_database,), kwargs={"folder": folder})
        victim.start()
        wait_for(
            empty_database,
            f"select from {BUILDING} and wait_event_type = 'Lock'",
        )
        victim.kill()
        victim.join()
        with psycopg.connect(empty_database, autocommit=True) as admin:
            admin.execute(f"select pg_terminate_backend(pid, 10000) from {BUILDING}")
        assert ask(empty_database, "select to_regclass('kb.a_x') is not null")
        assert not index_valid(empty_database)
    assert labels(migrate(empty_database, folder=folder)) == ["0003_index"]
    assert index_valid(empty_database)


def test_racers_do_not_deadlock_on_a_concurrent_build(empty_database: str, folder: Path) -> None:
    (folder / "0003_index.sql").write_text(CONCURRENT)
    racers = [
        _context.Process(target=migrate, args=(empty_database,), kwargs={"folder": folder})
        for _ in range(4)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
    assert [racer.exitcode for racer in racers] == [0] * 4
    assert index_valid(empty_database)


@pytest.mark.requirement("O-33")
def test_an_owner_without_superuser_migrates_after_the_administrators_step(
    new_server: Callable[..., EmbeddedServer],
) -> None:
    server = new_server()  # of its own: roles belong to all databases of a server
    server.start()
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as admin:
        admin.execute("create role plain login createrole")
        admin.execute("create database theirs owner plain")
    plain = make_conninfo(server.dsn("owner", "theirs"), user="plain")
    with pytest.raises(PolicyError) as caught:
        migrate(plain)
    assert caught.value.code == "extension_missing"
    assert "kb db ddl --extensions" in caught.value.next_step
    run_psql(server.dsn("owner", "theirs"), extension_ddl())
    assert migrate(plain) == load_migrations()
    assert ask(plain, "select not rolsuper from pg_roles where rolname = current_user")
