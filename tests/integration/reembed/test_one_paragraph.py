"""A changed paragraph costs its own chunk, wherever it stands and however long the document is."""

from __future__ import annotations

import pytest

from tests.integration.line.conftest import Bench

SECTIONS = 500


def manual(first: str) -> str:
    """A document whose sections are a chunk each, under a paragraph at the top."""
    sections = (
        f"## Section {n}\n\nMachine {n} is oiled every {n + 2} hours, by whoever starts it. The "
        f"oil stands in cabinet {n}; an empty can goes into bin {n}.\n"
        for n in range(SECTIONS)
    )
    return f"# Manual\n\n{first}\n\n" + "\n".join(sections)


@pytest.mark.requirement("O-11", "B-18", "P-15")
def test_a_paragraph_changed_or_put_in_at_the_top_embeds_two_chunks_at_most(bench: Bench) -> None:
    key = bench.ingest("manual.md", manual("This manual is about the machines of hall 3."))
    assert bench.state(key) == ("indexed", "")
    made = bench.counters["embedded"]
    assert made >= SECTIONS
    for first in (
        "This manual is about the machines of the halls 3 and 4.",
        "A new paragraph stands here.\n\nThis manual is about the machines of the halls 3 and 4.",
    ):
        bench.ingest("manual.md", manual(first))
        assert bench.state(key) == ("indexed", "")
        assert 1 <= bench.counters["embedded"] - made <= 2
        made = bench.counters["embedded"]
    assert "hall 3" not in bench.texts("which halls is the manual about")[0]
