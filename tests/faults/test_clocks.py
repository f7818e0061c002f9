"""Clocks an hour apart and clocks that stand still: intervals never overlap, the newest is found.

Three pipelines with clocks of their own take turns at one document, in a seeded order; its source
changes and reverts. What holds is decided in Postgres, so no clock can make two versions hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from kb_resources.compose import open_line
from tests.integration.line.conftest import Bench

_OVERLAPPING = """
    select count(*) from kb.validity a join kb.validity b
      on a.document_key = b.document_key and a.validity_key < b.validity_key
      and a.valid && b.valid and a.known && b.known
"""
_CURRENT = """
    select d.document_id, v.digest from kb.validity x join kb.version v using (version_key)
    join kb.document d on d.document_key = v.document_key
    where upper_inf(x.known) and upper_inf(x.valid) order by 1
"""


class Clock:
    """So far beside the true time; `step_s` 0 stands still."""

    def __init__(self, beside: timedelta, step_s: float) -> None:
        self._now = datetime(2026, 6, 1, 12, tzinfo=UTC) + beside
        self._step = timedelta(seconds=step_s)

    def __call__(self) -> datetime:
        self._now += self._step
        return self._now


CLOCKS: tuple[Callable[[], Clock], ...] = (
    lambda: Clock(timedelta(), 1),
    lambda: Clock(timedelta(hours=1), 1),
    lambda: Clock(timedelta(hours=-1), 1),
    lambda: Clock(timedelta(), 0),
)


def take_turns(bench: Bench, turns: int, seed: int) -> None:
    seeded = random.Random(seed)
    texts = [f"# Gate\n\nThe gate opens at {hour} on working days.\n" for hour in range(5, 9)]
    with ExitStack() as stack, psycopg.connect(bench.settings.database_url) as conn:
        lines = [
            stack.enter_context(open_line(bench.settings, actor="test", clock=clock()))
            for clock in CLOCKS
        ]
        key = lines[0].register(bench.request("gate.md", scope="acme"))
        for _ in range(turns):
            bench.write("gate.md", seeded.choice(texts))
            line = seeded.choice(lines)
            line.run_all([key])
            [row] = line.rows([key])
            assert row.state == "indexed", row.reason
            assert conn.execute(_OVERLAPPING).fetchone() == (0,)
            assert conn.execute(_CURRENT).fetchall() == [(key.document_id, row.digest)]
            conn.rollback()


@pytest.mark.requirement("P-64")
def test_clocks_that_disagree_leave_one_version_at_a_time(bench: Bench) -> None:
    bench.write("gate.md", "# Gate\n\nThe gate is new.\n")
    take_turns(bench, 8, seed=1)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.requirement("P-64")
def test_two_hundred_turns_of_clocks_that_disagree(bench: Bench) -> None:
    bench.write("gate.md", "# Gate\n\nThe gate is new.\n")
    take_turns(bench, 200, seed=2)
