"""A put that dies between two protocol messages leaves the old version or the new, never a mix."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kb_resources.store.migrate import migrate
from kb_resources.store.server import EmbeddedServer
from tests.integration.test_server_recovery import SAFE

from .putter import CHUNKS, texts_of
from .wiretap import Wiretap

_PUTTER = Path(__file__).with_name("putter.py")
_STATE = """
    select v.version, array_agg(p.text order by p.ordinal),
      count(l.passage_key), count(e.passage_key),
      bool_and(l.valid_until is null and e.valid_until is null)
    from kb.document d
    join kb.validity x on x.document_key = d.document_key and upper_inf(x.known)
      and upper_inf(x.valid)
    join kb.version v on v.version_key = x.version_key
    join kb.passage p on p.version_key = v.version_key
    left join kb.lex l using (passage_key) left join kb.embedding e using (passage_key)
    group by v.version
"""
_LEFT_BEHIND = """
    select (select count(*) from kb.staged_chunk) + (select count(*) from kb.staged_vector)
      + (select count(*) from kb.lex l join kb.passage p using (passage_key)
        where l.valid_until is null and not exists (select from kb.validity x
          where x.version_key = p.version_key and upper_inf(x.known) and upper_inf(x.valid)))
"""


class Putter:
    """The client process."""

    def __init__(self, dsn: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(_PUTTER), dsn, "acme"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.backend = int(self.answer().split()[1])

    def put(self, number: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def tapped(dsn: str) -> Iterator[tuple[Wiretap, str]]:
    """A wiretap before a server, and a connection string that goes through it."""
    parts = conninfo_to_dict(dsn)
    server_socket = Path(str(parts["host"])) / f".s.PGSQL.{parts.get('port', 5432)}"
    folder = Path(tempfile.mkdtemp(prefix="kbt"))
    tap = Wiretap(server_socket, folder)
    try:
        yield tap, make_conninfo(dsn, host=str(folder), application_name="putter")
    finally:
        tap.close()
        shutil.rmtree(folder)


def patiently(dsn: str, query: str) -> list[tuple[object, ...]]:
    """Rows, once the server is up again and the dead client's backend is gone."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with psycopg.connect(dsn) as conn:
                gone = conn.execute(
                    "select not exists (select from pg_stat_activity where"
                    " application_name = 'putter' and state <> 'idle' and xact_start is not null)"
                ).fetchone()
                if gone == (True,):
                    return conn.execute(query.encode()).fetchall()
        except psycopg.OperationalError:
            pass
        assert time.monotonic() < deadline, "the server did not come back"
        time.sleep(0.02)


def look(owner: str) -> object:
    """What a reader sees, with all that must be together."""
    [found] = patiently(owner, _STATE)
    assert patiently(owner, _LEFT_BEHIND) == [(0,)]
    version, texts, lexical, vectors, open_ended = found
    assert (lexical, vectors, open_ended) == (CHUNKS + 1, CHUNKS + 1, True)
    return version, texts


def prepare(owner: str) -> None:
    with psycopg.connect(owner) as conn:
        conn.execute("insert into kb.scope (name) values ('acme')")


def points(messages: int, count: int) -> list[int]:
    """Message numbers spread over a put, its first and last among them."""
    step = (messages - 1) / (count - 1)
    return sorted({round(1 + n * step) for n in range(count)})


def kill_clients(server: EmbeddedServer, database_name: str, count: int) -> tuple[int, int]:
    owner = server.dsn("owner", database_name)
    prepare(owner)
    old = new = 0
    with tapped(server.dsn("pipeline", database_name)) as (tap, dsn):
        putter = Putter(dsn)
        try:
            putter.put(0)
            assert putter.answer().startswith("done")
            tap.arm(None)
            putter.put(1)
            assert putter.answer().startswith("done")
            messages = tap.disarm()
        finally:
            putter.close()
        assert messages > 40
        for number, at in enumerate(points(messages, count), 2):
            before = look(owner)
            putter = Putter(dsn)
            try:
                tap.arm(at, putter.process.kill)
                putter.put(number)
                assert putter.answer() == ""
                assert putter.process.wait() == -signal.SIGKILL
            finally:
                tap.disarm()
                putter.close()
            after = look(owner)
            if after == before:
                old += 1
            else:
                assert after[1] == texts_of(number)  # type: ignore[index]
                new += 1
    return old, new


@pytest.mark.requirement("O-10", "W-47")
def test_a_client_killed_between_messages_leaves_old_or_new(
    server: EmbeddedServer, database_name: str
) -> None:
    old, new = kill_clients(server, database_name, 6)
    assert old >= 4
    assert old + new == 6


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.requirement("O-10", "W-47")
def test_a_client_killed_at_fifty_points_leaves_old_or_new(
    server: EmbeddedServer, database_name: str
) -> None:
    old, new = kill_clients(server, database_name, 50)
    assert old >= 40
    assert old + new == 50


def kill_backends(server: EmbeddedServer, count: int) -> tuple[int, int]:
    """One client lives through all of it: it connects again after each crash."""
    server.start()
    owner = server.dsn("owner")
    migrate(owner)
    with psycopg.connect(owner, autocommit=True) as conn:
        conn.execute("truncate kb.scope cascade")
    prepare(owner)
    old = new = 0
    with tapped(server.dsn("pipeline")) as (tap, dsn):
        putter = Putter(dsn)
        try:
            putter.put(0)
            assert putter.answer().startswith("done")
            tap.arm(None)
            putter.put(1)
            assert putter.answer().startswith("done")
            messages = tap.disarm()
            putter.close()
            for number, at in enumerate(points(messages, count), 2):
                before = look(owner)
                putter = Putter(dsn)
                tap.arm(at, killing(putter.backend))
                putter.put(number)
                answer = putter.answer()
                tap.disarm()
                putter.close()
                after = look(owner)
                if after == before:
                    assert answer.startswith("error")
                    old += 1
                else:
                    assert after[1] == texts_of(number)  # type: ignore[index]
                    new += 1
        finally:
            putter.close()
    return old, new


def killing(pid: int) -> Callable[[], None]:
    return lambda: os.kill(pid, signal.SIGKILL)


@pytest.mark.requirement("O-10")
def test_a_killed_backend_leaves_old_or_new(used_server: Callable[..., EmbeddedServer]) -> None:
    old, new = kill_backends(used_server(settings=SAFE), 3)
    assert old >= 2
    assert old + new == 3


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.requirement("O-10")
def test_a_backend_killed_at_fifty_points_leaves_old_or_new(
    used_server: Callable[..., EmbeddedServer],
) -> None:
    old, new = kill_backends(used_server(settings=SAFE), 50)
    assert old >= 40
    assert old + new == 50
