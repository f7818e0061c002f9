"""A fill that is killed goes on with the rest, and searches notice nothing of either.

The process is a real one, killed by the endpoint that it asks, in the middle of a request: so each
run dies at a known place, however slow the machine is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field

import pytest

from kb_resources import embed
from kb_resources.compose import open_retriever
from kb_resources.model import Principal
from kb_resources.settings import as_environment
from kb_resources.stages import reembed
from tests.integration.embed.fake_server import FakeServer
from tests.integration.line.conftest import ROOT, Bench
from tests.integration.reembed.conftest import SERVED, counted, held

DOCUMENTS = 20
SECTIONS = 5
BATCH = 5
PASSAGES = DOCUMENTS * SECTIONS
SUBJECTS = ("leave", "travel", "office", "budget", "safety")


def text_of(number: int) -> str:
    parts = [
        f"## {subject.title()} of unit {number}\n\nUnit {number} decides on {subject} by rule "
        f"{number * SECTIONS + part}, which its head signs.\n"
        for part, subject in enumerate(SUBJECTS)
    ]
    return f"# Unit {number}\n\n" + "\n".join(parts)


@dataclass
class Killer:
    """Embeds for a process, and kills it while it waits for the text with a given number."""

    fake: FakeServer
    at: int = 0
    process: subprocess.Popen[str] | None = None
    asked: int = 0
    started: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        good = self.fake.vectors

        def vectors(texts: list[str]) -> list[list[float]]:
            # The last text of a request is a canary; sixteen of them are the check at the start.
            self.asked += len(texts) - 1 if len(texts) != 16 else 0
            if self.at and self.asked >= self.at:
                self.started.wait()
                assert self.process is not None
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
            return good(texts)

        self.fake.vectors = vectors

    def fill(self, bench: Bench, at: int = 0) -> tuple[int, str]:
        """Run `kb reembed fill`; its exit code, and what it printed."""
        self.at, self.asked = at, 0
        self.started.clear()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "kb.cli", "reembed", "fill", "--scope", "acme", "--json"),
                *("--batch", str(BATCH)),
            ],
            env=os.environ | as_environment(bench.settings),
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.set()
        out, error = self.process.communicate()
        assert self.process.returncode in (0, -signal.SIGKILL), error
        return self.process.returncode, out


class Searcher(threading.Thread):
    """Measures, round after round, how many known passages a search finds."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self._retriever = open_retriever(bench.settings, bench.reader.database)
        self.over = threading.Event()
        self.recalls: list[float] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self.over.is_set() or len(self.recalls) < 2:
                self.recalls.append(self.recall())
        except Exception as error:  # noqa: BLE001 - the test fails with it
            self.error = error

    def recall(self) -> float:
        found = 0
        for number in range(DOCUMENTS):
            subject = SUBJECTS[number % SECTIONS]
            hits = self._retriever.search(
                f"who signs for {subject} of unit {number}?",
                scope="acme",
                principal=Principal("searcher"),
                mode="hybrid",
                k=10,
            ).hits
            wanted = f"{subject.title()} of unit {number}"
            found += any(wanted in hit.heading_path for hit in hits)
        return found / DOCUMENTS


@pytest.mark.requirement("O-15", "B-19", "B-28")
def test_a_killed_fill_goes_on_with_the_rest_while_searches_find_everything(
    bench: Bench, fake: FakeServer
) -> None:
    for number in range(DOCUMENTS):
        bench.ingest(f"unit-{number}.md", text_of(number))
    assert bench.settings.models_dir is not None
    caps = bench.line.capabilities
    assert counted(bench, caps.versions.model_id) == (PASSAGES, PASSAGES)
    embed.prepare(bench.settings.models_dir, SERVED, endpoint=fake.endpoint())
    searcher = Searcher(bench)
    baseline = searcher.recall()
    assert baseline >= 0.9
    other = reembed.start(caps, "acme", SERVED, actor="test").beside or ""
    killer = Killer(fake)
    searcher.start()
    try:
        done = 0
        for share in (0.1, 0.5, 0.9):
            assert killer.fill(bench, at=round(share * PASSAGES) - done)[0] == -signal.SIGKILL
            _, so_far = counted(bench, other)
            # All that was answered before the last request was kept.
            assert so_far == done + (killer.asked - 1) // BATCH * BATCH
            done = so_far
        assert round(0.9 * PASSAGES) - BATCH <= done < PASSAGES
        assert held(bench).live == caps.versions.model_id
        code, out = killer.fill(bench)
        assert code == 0
        assert killer.asked == PASSAGES - done
        told = json.loads(out)
        assert (told["embedded"], told["failed"]) == (PASSAGES - done, {})
        assert counted(bench, other) == (PASSAGES, PASSAGES)
        reembed.swap(caps, "acme", actor="test")
    finally:
        searcher.over.set()
        searcher.join()
    assert searcher.error is None
    assert min(searcher.recalls) >= baseline - 0.01
    assert held(bench).live == other
    assert searcher.recall() >= baseline - 0.01
