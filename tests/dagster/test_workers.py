"""Workers on one Postgres: real processes with batches that overlap, one of them killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from sqlalchemy.exc import DBAPIError

from kb_resources.model import DocumentKey

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

TEXT = "# Locker {n}\n\nThe key of locker {n} lies in drawer {m} of the reception desk.\n"
_SUMS = """
    select (select count(*) from kb.document where state = 'indexed'),
      (select count(*) from kb.version),
      (select count(*) from kb.validity where upper_inf(known) and upper_inf(valid)),
      (select count(*) from kb.passage),
      (select count(*) from kb.lex),
      (select count(*) from kb.embedding),
      (select count(*) from kb.staged_chunk) + (select count(*) from kb.staged_vector)
"""
_INDEXED_TWICE = """
    select count(*) from (select document_key from kb.lifecycle where event = 'indexed'
      group by document_key having count(*) > 1) twice
"""


class Worker:
    """One worker process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )

    def give(self, *batch_ids: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{batch_id}\n" for batch_id in batch_ids))
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def prove(plant: Plant, documents: int, together: int) -> None:
    """Two workers get every batch, in opposite orders; one is killed in the middle of its own."""
    keys = plant.register(
        {f"locker-{n}.md": TEXT.format(n=n, m=n * 7 % 13) for n in range(documents)}
    )

    def batches(order: list[DocumentKey]) -> list[str]:
        parts = [order[start : start + together] for start in range(0, len(order), together)]
        return [plant.line.new_batch(part, actor="t", cause="t") for part in parts]

    one, other = Worker(), Worker()
    try:
        assert [one.hear(), other.hear()] == ["ready", "ready"]
        forwards, backwards = batches(keys), batches(keys[::-1])
        one.give(*forwards)
        other.give(*backwards)
        assert other.hear() == "done"
        other.process.send_signal(signal.SIGKILL)
        other.process.wait()
        assert [one.hear() for _ in forwards] == ["done"] * len(forwards)
        # Nothing was left to whoever was killed: the survivor had all documents in its batches.
        third = Worker()
        assert third.hear() == "ready"
        third.give(*backwards[1:])
        assert [third.hear() for _ in backwards[1:]] == ["done"] * (len(backwards) - 1)
        third.end()
    finally:
        one.end()
        other.end()
    with plant.line.capabilities.database.transaction("owner") as conn:
        row = conn.execute(_SUMS).fetchone()
        twice = conn.execute(_INDEXED_TWICE).fetchone()
    assert row == (*[documents] * 6, 0)
    assert twice == (0,)
    assert set(plant.states(keys).values()) == {"indexed"}


@pytest.mark.requirement("P-13")
def test_two_workers_lose_nothing_and_do_nothing_twice(plant: Plant) -> None:
    prove(plant, 24, 6)


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.requirement("P-13")
def test_a_thousand_documents_by_two_workers_one_of_them_killed(plant: Plant) -> None:
    prove(plant, 1000, 50)


def test_pools_are_made_by_many_at_once(instance: dg.DagsterInstance) -> None:
    """Dagster's own way of making them fails for whoever comes second (see `kb_assets.pools`)."""
    from kb_assets.line import POOLS
    from kb_assets.pools import ensure_pools

    started = threading.Barrier(8)
    failed: list[BaseException] = []

    def make() -> None:
        started.wait()
        try:
            ensure_pools(instance)
        except DBAPIError as error:
            failed.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert instance.event_log_storage.get_concurrency_keys() >= POOLS
