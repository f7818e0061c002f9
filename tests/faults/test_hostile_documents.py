"""Documents that spin, crash or devour memory among many: exactly those are lost, at once.

The spinning and the crashing one are Word files whose converter, a real program that the parser's
child starts, behaves so; the bomb is a JSON file of a million small objects.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kb_resources.compose import open_line
from kb_resources.model import DocumentKey, Stage
from kb_resources.stages.line import StageOutcome
from tests.faults.test_full_disks import _WORD_FILE
from tests.integration.line.conftest import Bench
from tests.integration.parse.test_sandbox import HUNGRY

_CONVERTER = """#!{python}
import os, signal, sys, time
data = open(sys.argv[-1], "rb").read()
while data.endswith(b"SPIN"):
    pass
while data.endswith(b"HANG"):
    time.sleep(1)
os.kill(os.getppid(), signal.SIGSEGV)
"""
WALL_S = 8.0


def hostile(way: str) -> tuple[str, bytes]:
    """Suffix and bytes."""
    if way == "bomb":
        return ".json", HUNGRY
    return ".doc", _WORD_FILE.read_bytes() + way.upper().encode()


def lose_exactly(
    bench: Bench, tmp_path: Path, count: int, each: int, ways: Sequence[str], seed: int = 9
) -> tuple[float, float]:
    """Returns the longest pause after a loss and the slowest good document, in seconds."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "soffice").write_text(_CONVERTER.format(python=sys.executable))
    (programs / "soffice").chmod(0o755)
    names = [f"locker-{n}.md" for n in range(count)]
    for n, name in enumerate(names):
        bench.write(name, f"# Locker {n}\n\nThe key of locker {n} lies in drawer {n * 7 % 13}.\n")
    lost = set()
    for way in ways:
        suffix, data = hostile(way)
        for n in range(each):
            lost.add(f"{way}-{n}{suffix}")
            # Its own bytes: a copy would be a duplicate.
            bench.write(f"{way}-{n}{suffix}", data.replace(b"0]", b"%d]" % n) if n else data)
            if way != "bomb" and n:
                bench.write(f"{way}-{n}{suffix}", data[:-8] + b"%04d" % n + data[-4:])
    order = names + sorted(lost)
    random.Random(seed).shuffle(order)
    ended: list[tuple[float, str]] = []
    settings = replace(bench.settings, parse_memory_bytes=300 << 20, parse_timeout_s=WALL_S)
    with open_line(settings, actor="test") as line:
        keys = {line.register(bench.request(name)): name for name in order}

        def seen(stage: Stage, key: DocumentKey, _: StageOutcome) -> None:
            if stage is Stage.PARSE:
                ended.append((time.monotonic(), keys[key]))

        line.run_all(list(keys), seen=seen)
        states = {keys[row.key]: (row.state, row.reason) for row in line.rows(list(keys))}
    assert {name for name, (state, _) in states.items() if state != "indexed"} == lost
    for name in lost:
        state, reason = states[name]
        assert state in ("failed", "too_large"), (name, state)
        assert reason, name
    good = {name for _, name in ended} - lost
    following, others = [], []
    for (before, name), (after, then) in pairwise(ended):
        if then in good:
            (following if name in lost else others).append(after - before)
    return max(following), max(others)


@pytest.fixture
def patched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path


@pytest.mark.requirement("O-57")
def test_three_hostile_documents_among_others_are_the_only_ones_lost(
    bench: Bench, patched: Path
) -> None:
    lose_exactly(bench, patched, count=9, each=1, ways=("hang", "crash", "bomb"))


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("part", range(2))
def test_thirty_hostile_documents_among_a_thousand(bench: Bench, patched: Path, part: int) -> None:
    """Fifteen among five hundred in each part, in another order."""
    after_loss_s, between_s = lose_exactly(
        bench, patched, count=485, each=5, ways=("spin", "crash", "bomb"), seed=part
    )
    print(f"the next document was read {after_loss_s:.2f} s after a loss, else {between_s:.2f} s")
    assert after_loss_s < 10
