"""PostgreSQL killed in the middle of commits, all of it at once: nothing acknowledged is lost.

Two clients publish editions without pause. The first one's commit is let through to the server, and
a seeded moment later, within a few times what a commit takes here, every process of the server is
killed. What a client was told is done must be there after the restart; what it was not told may be
there, but whole.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import psycopg
import pytest

from kb_resources.store.migrate import migrate
from kb_resources.store.server import EmbeddedServer
from tests.contract import putter
from tests.contract.test_crash import tapped
from tests.contract.wiretap import Wiretap
from tests.integration.test_server_recovery import SAFE, postgres_processes

_DIGESTS = """
    select v.digest, count(p.passage_key), count(l.passage_key), count(e.passage_key)
    from kb.document d join kb.scope s using (scope_id) join kb.version v using (document_key)
    join kb.passage p using (version_key)
    left join kb.lex l using (passage_key) left join kb.embedding e using (passage_key)
    where s.name = %s group by v.version_key, v.digest
"""
_CURRENT = """
    select count(*) from kb.validity join kb.scope s using (scope_id)
    where upper_inf(known) and upper_inf(valid) and s.name = %s
"""


class Client:
    """A process that publishes edition after edition; remembers what it was told is done."""

    def __init__(self, dsn: str, scope: str) -> None:
        self.scope = scope
        self.acknowledged: list[int] = []
        self._number = 0
        self._process = subprocess.Popen(
            [sys.executable, str(Path(putter.__file__)), dsn, scope],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._hear().startswith("ready")

    def put(self) -> bool:
        """Publish the next edition; whether the client was told that it is there."""
        number, self._number = self._number, self._number + 1
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        said = self._hear()
        assert said.startswith(("done", "error")), said
        if said.startswith("done"):
            self.acknowledged.append(number)
        return said.startswith("done")

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def processes_of(server: EmbeddedServer) -> list[psutil.Process]:
    """The postmaster, which starts no more once it is dead, and then those that it started."""
    [postmaster] = postgres_processes(server)
    return [postmaster, *postmaster.children()]


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """As a power cut: no process of the server gets to do anything more."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def check(server: EmbeddedServer, client: Client) -> None:
    with psycopg.connect(server.dsn("owner")) as conn:
        found = conn.execute(_DIGESTS, [client.scope]).fetchall()
        current = conn.execute(_CURRENT, [client.scope]).fetchone()
    whole = putter.CHUNKS + 1
    assert all(row[1:] == (whole, whole, whole) for row in found)
    digests = {str(row[0]) for row in found}
    assert {putter.edition_of(n).digest for n in client.acknowledged} <= digests
    assert current == (1,)


def kill_commits(server: EmbeddedServer, rounds: int, seed: int) -> tuple[int, int]:
    """Returns how many commits in the middle of which the server was killed were acknowledged."""
    seeded = random.Random(seed)
    server.start()
    migrate(server.dsn("owner"))
    with psycopg.connect(server.dsn("owner"), autocommit=True) as conn:
        conn.execute("truncate kb.scope cascade")
        conn.execute("insert into kb.scope (name) values ('tapped'), ('beside')")
    told = 0
    with tapped(server.dsn("pipeline")) as (tap, dsn):
        first, beside = Client(dsn, "tapped"), Client(server.dsn("pipeline"), "beside")
        try:
            for client in (first, beside):
                assert client.put()
            messages = _settled(tap, first)
            commit_s = statistics.median(_time_commit(tap, first, messages) for _ in range(5))
            for _ in range(rounds):
                messages = _settled(tap, first)
                delay_s = seeded.uniform(0.0, 3.0 * commit_s)
                # Those found now: looking for them takes longer than a commit.
                timer = threading.Timer(delay_s, kill_all, [processes_of(server)])
                tap.arm(messages, timer.start)  # the last message is the commit
                over = threading.Event()
                busy = threading.Thread(target=_put_until, args=(beside, over))
                busy.start()
                told += first.put()
                if timer.ident is None:  # a put of fewer messages: then after its commit
                    timer.start()
                timer.join()
                over.set()
                busy.join()
                tap.disarm()
                server.start()
                for client in (first, beside):
                    check(server, client)
                _reconnect(first)
                _reconnect(beside)
        finally:
            first.end()
            beside.end()
    assert len(beside.acknowledged) >= rounds
    return told, len(first.acknowledged) + len(beside.acknowledged)


def _settled(tap: Wiretap, client: Client) -> int:
    """Messages of a put, once the statements that a new connection prepares are prepared."""
    counts: list[int] = []
    while len(counts) < 8 or counts[-1] != counts[-2]:
        tap.arm(None)
        assert client.put()
        counts.append(tap.disarm())
    return counts[-1]


def _time_commit(tap: Wiretap, client: Client, messages: int) -> float:
    """Seconds from a put's last message to its answer."""
    sent_s: list[float] = []
    tap.arm(messages, lambda: sent_s.append(time.perf_counter()))
    assert client.put()
    answered_s = time.perf_counter()
    tap.disarm()
    return answered_s - sent_s[0] if sent_s else 0.0


def _put_until(client: Client, over: threading.Event) -> None:
    while not over.is_set() and client.put():
        pass


def _reconnect(client: Client) -> None:
    """The first calls after a crash may find broken connections in the pool."""
    for _ in range(20):
        if client.put():
            return
    pytest.fail("a client does not come back after a crash")


@pytest.mark.requirement("O-10")
def test_no_acknowledged_edition_is_lost_when_the_server_dies_in_a_commit(
    used_server: Callable[..., EmbeddedServer],
) -> None:
    kill_commits(used_server(settings=SAFE), 2, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.requirement("O-10")
@pytest.mark.parametrize("part", range(4))
def test_a_hundred_deaths_in_commits_lose_no_acknowledged_edition(
    used_server: Callable[..., EmbeddedServer], part: int
) -> None:
    """Twenty-five in each part."""
    told, acknowledged = kill_commits(used_server(settings=SAFE), 25, seed=7 + part)
    print(f"of 25 commits {told} were acknowledged before the death; {acknowledged} in all, 0 lost")
    assert 0 < told < 25  # some deaths came before the commit was through, some after
