"""The embedded server after crashes: killed servers, killed starters, racing starters, stale files.

Real processes throughout. Racing and killed starters are forked from a clean process that has the
server's module loaded, so that they run at once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from kb_resources.store.server import _DATABASES_LOCK, EmbeddedServer

NewServer = Callable[..., EmbeddedServer]
# The real defaults: recovery is tested with every safety on.
SAFE: dict[str, str] = {"shared_buffers": "32MB"}

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["kb_resources.store.server", "psutil"])


def postmaster(server: EmbeddedServer) -> int:
    pid = server.status().pid
    assert pid is not None
    return pid


def postgres_processes(server: EmbeddedServer) -> list[psutil.Process]:
    data = server.status().data_dir
    assert data is not None
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            is_server = process.name() == "postgres" and str(data) in process.cmdline()
            if is_server and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def kill_server(server: EmbeddedServer) -> None:
    os.kill(postmaster(server), signal.SIGKILL)


def rows(server: EmbeddedServer) -> list[int]:
    with psycopg.connect(server.dsn()) as conn:
        return [row[0] for row in conn.execute("select x from t order by x").fetchall()]


@pytest.mark.parametrize(
    "rounds", [3, pytest.param(25, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_every_acknowledged_commit_survives_kill_9_of_the_server(
    used_server: NewServer, rounds: int
) -> None:
    server = used_server(settings=SAFE)
    server.start()
    acknowledged = []
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("drop table if exists t")
        conn.execute("create table t (x int)")
    for number in range(rounds):
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            conn.execute("insert into t values (%s)", [number])
            acknowledged.append(number)
            kill_server(server)
        server.start()
        assert rows(server) == acknowledged


def test_a_busy_backend_of_a_killed_server_does_not_hold_up_the_next(
    used_server: NewServer,
) -> None:
    server = used_server(settings=SAFE)
    server.start()
    busy = psycopg.connect(server.dsn(), autocommit=True)
    spin = "do $$ declare n bigint := 0; begin loop n := n + 1; end loop; end $$"
    busy.pgconn.send_query(spin.encode())
    backend = psutil.Process(busy.info.backend_pid)
    kill_server(server)
    time.sleep(0.2)
    assert alive(backend)  # it has not noticed: this is the case to survive
    server.start()
    assert not alive(backend)
    busy.close()


def alive(process: psutil.Process) -> bool:
    """Whether it still runs; without an init process that reaps, a dead orphan stays a zombie."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_racing_starters_make_one_server(new_server: NewServer) -> None:
    server = new_server()
    for _ in range(2):
        starters = [_context.Process(target=server.start) for _ in range(5)]
        for starter in starters:
            starter.start()
        for starter in starters:
            starter.join(60)
        assert [starter.exitcode for starter in starters] == [0] * 5
        assert len(postgres_processes(server)) == 1
        kill_server(server)  # the second round races to recover


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(30, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_a_starter_killed_at_any_moment_leaves_nothing_that_stops_the_next(
    new_server: NewServer, open_folder: Path, rounds: int
) -> None:
    seeded = random.Random(rounds)
    start_s = 1.0  # learned below, so that kills reach every phase on any machine
    for number in range(rounds):
        server = new_server(open_folder / f"home{number}")
        starter = _context.Process(target=server.start)
        starter.start()
        time.sleep(seeded.uniform(0.0, 1.1 * start_s))
        starter.kill()
        starter.join()
        before = time.monotonic()
        server.start()
        start_s = time.monotonic() - before
        assert len(postgres_processes(server)) == 1
        server.destroy()


def test_a_pid_file_whose_number_belongs_to_another_program_is_stale(
    used_server: NewServer, open_folder: Path
) -> None:
    server = used_server()
    server.start()
    status = server.status()
    assert status.data_dir is not None
    assert status.socket_dir is not None
    owner = status.data_dir.stat()
    pid_file = status.data_dir / "postmaster.pid"
    lock_file = status.socket_dir / ".s.PGSQL.5432.lock"
    kept = {file: file.read_text().split("\n", 1)[1] for file in (pid_file, lock_file)}
    server.stop()
    # The same account runs it, which is the case that PostgreSQL itself takes for a live server.
    identity = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["sleep", "60"], cwd="/", **identity) as bystander:  # type: ignore[call-overload]
        try:
            for file, rest in kept.items():
                file.write_text(f"{bystander.pid}\n{rest}")
                file.chmod(0o600)
                if identity:
                    os.chown(file, owner.st_uid, owner.st_gid)
            assert server.status().pid is None
            server.start()
            assert postmaster(server) != bystander.pid
            assert bystander.poll() is None
        finally:
            bystander.kill()


@pytest.mark.parametrize("text", ["", "999999\n", "not a number\n"])
def test_a_damaged_pid_file_does_not_stop_a_start(used_server: NewServer, text: str) -> None:
    server = used_server()
    server.start()
    data = server.status().data_dir
    assert data is not None
    server.stop()
    (data / "postmaster.pid").write_text(text)
    server.start()
    assert server.status().running


def test_a_half_made_cluster_is_made_anew(new_server: NewServer) -> None:
    server = new_server()
    server.start()
    data = server.status().data_dir
    assert data is not None
    server.stop()
    data.rename(data.with_name("data.new"))
    (data.with_name("data.new") / "PG_VERSION").unlink()
    server.start()
    assert server.status().running


def test_a_home_deleted_under_a_running_server_starts_afresh(new_server: NewServer) -> None:
    server = new_server()
    server.start()
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("create table t (x int)")
    old = postmaster(server)
    shutil.rmtree(server._home, ignore_errors=True)
    shutil.rmtree(server._home, ignore_errors=True)  # it may write while we delete
    server.start()
    assert postmaster(server) != old
    assert [process.pid for process in postgres_processes(server)] == [postmaster(server)]
    with psycopg.connect(server.dsn()) as conn:
        assert conn.execute("select to_regclass('t')").fetchone() == (None,)


def test_a_start_waits_for_a_server_that_is_shutting_down(used_server: NewServer) -> None:
    server = used_server(settings=SAFE)
    server.start()
    old = postmaster(server)
    with psycopg.connect(server.dsn()):
        os.kill(old, signal.SIGTERM)  # a smart shutdown waits for this session
        waiting = _context.Process(target=server.start)
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
    waiting.join(60)
    assert waiting.exitcode == 0
    assert postmaster(server) != old


def test_a_session_left_at_making_the_databases_is_waited_for(used_server: NewServer) -> None:
    server = used_server()
    server.start()
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as left:
        left.execute("drop database dagster with (force)")
        left.execute("drop database kb with (force)")
        left.execute("select pg_advisory_lock(%s)", [_DATABASES_LOCK])
        next_one = _context.Process(target=server.start)
        next_one.start()
        deadline = time.monotonic() + 20
        while not left.execute(
            "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        ).fetchone():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        left.execute("create database kb owner kb_owner")  # what the killed starter had begun
    next_one.join(60)
    assert next_one.exitcode == 0
    with psycopg.connect(server.dsn("owner", "dagster")) as conn:
        assert conn.execute("select 1").fetchone() == (1,)
