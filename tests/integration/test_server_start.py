"""The embedded server: first start, attaching, stopping, what it offers and refuses."""

from __future__ import annotations

import os
import stat
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from kb_resources.errors import InputError, UnavailableError
from kb_resources.store.server import EmbeddedServer, ServerStatus

NewServer = Callable[..., EmbeddedServer]


def ask(server: EmbeddedServer, query: str, dbname: str = "kb") -> object:
    with psycopg.connect(server.dsn("owner", dbname)) as conn:
        row = conn.execute(query).fetchone()
    assert row is not None
    return row[0]


def test_the_first_start_makes_both_databases_and_opens_no_tcp_port(server: EmbeddedServer) -> None:
    assert ask(server, "select count(*) from pg_database where datname in ('kb', 'dagster')") == 2
    assert ask(server, "show listen_addresses") == ""
    assert ask(server, "show max_connections") == "200"
    assert ask(server, "show timezone") == "UTC"


def test_case_is_mapped_by_unicode_whatever_the_machine_speaks(server: EmbeddedServer) -> None:
    assert ask(server, "select lower('ŠĐČЖЊ')") == "šđčжњ"
    assert ask(server, "select datlocprovider from pg_database where datname = 'kb'") == "b"


def test_statements_and_row_values_stay_out_of_the_servers_log(server: EmbeddedServer) -> None:
    secret = "Ihre-Kündigung-4711"
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("create temp table t (x text primary key)")
        conn.execute("insert into t values (%s)", [secret])
        with pytest.raises(psycopg.errors.UniqueViolation):
            conn.execute(f"insert into t values ('{secret}')")
    data = server.status().data_dir
    assert data is not None
    logs = "".join(file.read_text() for file in (data / "log").glob("*.log"))
    assert "duplicate key" in logs
    assert secret not in logs


def test_the_server_outlives_the_process_that_started_it(used_server: NewServer) -> None:
    server = used_server()
    home = server._home
    script = (
        "import sys, pathlib; from kb_resources.store.server import EmbeddedServer; "
        "EmbeddedServer(pathlib.Path(sys.argv[1]), settings={'fsync': 'off'}).start()"
    )
    subprocess.run([sys.executable, "-c", script, str(home)], check=True, timeout=60)
    assert server.status().running
    pid = server.status().pid
    server.start()
    assert server.status().pid == pid
    assert ask(server, "select 1") == 1


def test_attaching_costs_a_connection_and_nothing_else(server: EmbeddedServer) -> None:
    def cost_s(action: Callable[[], object]) -> float:
        before = time.perf_counter()
        action()
        return time.perf_counter() - before

    attach = statistics.median(cost_s(server.start) for _ in range(15))
    connect = statistics.median(
        cost_s(psycopg.connect(server.dsn()).close) + cost_s(lambda: ask(server, "select 1"))
        for _ in range(15)
    )
    assert attach < 5 * connect


def test_folders_made_above_the_home_are_as_private_as_it(open_folder: Path) -> None:
    nested = EmbeddedServer(open_folder / "a" / "b" / "home")
    nested._make_home()
    expected = 0o711 if os.geteuid() == 0 else 0o700
    for folder in ("a", "a/b", "a/b/home"):
        assert stat.S_IMODE((open_folder / folder).stat().st_mode) == expected


def test_status_follows_the_servers_life(used_server: NewServer) -> None:
    server = used_server()
    assert server.status() == ServerStatus(False, None, None, None, None)
    server.start()
    up = server.status()
    assert up.running
    assert up.pid is not None
    assert up.version is not None
    assert up.version.count(".") == 1
    server.stop()
    down = server.status()
    assert (down.running, down.pid, down.data_dir) == (False, None, up.data_dir)
    assert up.version.startswith(f"{down.version}.")
    server.stop()  # nothing to do, no error


def test_a_connection_string_needs_a_server_that_was_started_once(new_server: NewServer) -> None:
    with pytest.raises(UnavailableError) as caught:
        new_server().dsn()
    assert "kb db start" in caught.value.next_step


def test_stopping_before_the_first_start_makes_no_folder(new_server: NewServer) -> None:
    server = new_server()
    server.stop()
    assert not server._home.exists()


def test_dagsters_role_reaches_its_own_database_through_sqlalchemy(server: EmbeddedServer) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="the extra [dagster] is not installed")
    engine = sqlalchemy.create_engine(server.sqlalchemy_url())
    try:
        with engine.begin() as conn:
            who, where = conn.execute(
                sqlalchemy.text("select current_user, current_database()")
            ).one()
            conn.execute(sqlalchemy.text("create table proof (x int)"))
            conn.execute(sqlalchemy.text("drop table proof"))
    finally:
        engine.dispose()
    assert (who, where) == ("kb_dagster", "dagster")


def test_the_callers_postgres_variables_do_not_disturb_it(
    used_server: NewServer, monkeypatch: pytest.MonkeyPatch, open_folder: Path
) -> None:
    monkeypatch.setenv("PGDATA", str(open_folder / "elsewhere"))
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGHOST", "no.such.host.invalid")
    monkeypatch.setenv("PGUSER", "nobody-in-particular")
    monkeypatch.setenv("PGDATABASE", "none")
    server = used_server()
    server.start()
    assert ask(server, "select current_user::text") == "kb_owner"


def test_a_server_that_cannot_start_says_why_and_what_to_do(used_server: NewServer) -> None:
    server = used_server(settings={"fsync": "off", "shared_buffers": "lots"})
    with pytest.raises(UnavailableError) as caught:
        server.start()
    assert 'invalid value for parameter "shared_buffers"' in caught.value.message
    assert caught.value.next_step
    assert not server.status().running


def test_an_unknown_account_is_refused(new_server: NewServer) -> None:
    with pytest.raises(InputError, match="no-such-account"):
        new_server(account="no-such-account").start()


def test_root_is_refused_as_the_servers_account(new_server: NewServer) -> None:
    with pytest.raises(InputError, match="root"):
        new_server(account="root").start()


def test_a_folder_without_programs_is_refused(new_server: NewServer, open_folder: Path) -> None:
    with pytest.raises(UnavailableError, match="no PostgreSQL in"):
        new_server(bin_dir=open_folder).start()


def test_a_home_that_cannot_be_made_is_an_unavailable_service(
    new_server: NewServer, open_folder: Path
) -> None:
    (open_folder / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot start"):
        new_server(open_folder / "file" / "home").start()
