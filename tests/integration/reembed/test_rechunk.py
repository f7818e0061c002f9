"""A scope that is cut anew, document by document, while a searcher looks for every one of them."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from kb_resources.compose import open_line, open_retriever
from kb_resources.model import Principal
from tests.integration.line.conftest import Bench

DOCUMENTS = 12
PARAGRAPH = "Rule {n} of the house says that matter {n} is decided by office number {n}. " * 6


def text_of(number: int) -> str:
    """Three sections that one chunk holds, or many."""
    sections = (f"## Part {part}\n\n{PARAGRAPH.format(n=number)}\n" for part in range(3))
    return f"# House rule {number}\n\n" + "\n".join(sections)


def paragraphs(bench: Bench) -> int:
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        row = conn.execute("select count(*) from kb.passage").fetchone()
    assert row is not None
    return int(row[0])


class Searcher(threading.Thread):
    """Looks for every document, again and again; remembers what it missed."""

    def __init__(self, bench: Bench, mode: str) -> None:
        super().__init__()
        self._retriever = open_retriever(bench.settings, bench.reader.database)
        self._mode = mode
        self.over = threading.Event()
        self.rounds = 0
        self.missed: list[str] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self.over.is_set() or self.rounds < 2:
                self.one_round()
                self.rounds += 1
        except Exception as error:  # noqa: BLE001 - the test fails with it
            self.error = error

    def one_round(self) -> None:
        for number in range(DOCUMENTS):
            found = self._retriever.search(
                f"house rule {number}: matter {number} office number {number}",
                scope="acme",
                principal=Principal("searcher"),
                mode=self._mode,
                k=100,
            )
            if f"House rule {number}" not in {hit.title for hit in found.hits}:
                self.missed.append(f"round {self.rounds}: document {number} by {found.mode}")


@pytest.mark.requirement("B-18")
def test_no_document_is_missed_while_a_scope_is_cut_anew(bench: Bench) -> None:
    keys = [bench.ingest(f"rule-{n}.md", text_of(n)) for n in range(DOCUMENTS)]
    before = paragraphs(bench)
    searchers = [Searcher(bench, mode) for mode in ("text", "vector")]
    for searcher in searchers:
        searcher.start()
    try:
        with open_line(replace(bench.settings, chunk_tokens=60), clock=bench.clock) as line:
            line.run_all(keys)
    finally:
        for searcher in searchers:
            searcher.over.set()
            searcher.join()
    assert paragraphs(bench) > before
    for searcher in searchers:
        assert searcher.error is None
        assert searcher.rounds >= 2
        assert not searcher.missed
