"""The erasure journal loses nothing, whoever writes beside and whatever died in a write."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb_resources.store.erasure_journal import ErasureJournal, JournalEntry


def entry(number: int, actor: str = "ann") -> JournalEntry:
    at = datetime(2026, 1, 1, 0, 0, number % 60, tzinfo=UTC)
    return JournalEntry(f"e{number:04}", "acme", f"{number:064x}", "ab" * 16, actor, "asked", at)


@pytest.mark.requirement("P-66")
@pytest.mark.parametrize("cut", [1, 40, 10_000])
def test_a_line_that_a_crash_cut_off_does_not_join_the_next(tmp_path: Path, cut: int) -> None:
    journal = ErasureJournal(tmp_path / "erasures.jsonl")
    journal.append(entry(1))
    whole = journal.path.read_bytes()
    journal.append(entry(2))
    added = journal.path.read_bytes()[len(whole) :]
    journal.path.write_bytes(whole + added[: min(cut, len(added) - 1)])
    journal.append(entry(3))
    assert journal.entries() == [entry(1), entry(3)]


def test_writers_beside_a_renaming_lose_nothing(tmp_path: Path) -> None:
    journal = ErasureJournal(tmp_path / "erasures.jsonl")
    journal.append(entry(0))
    start = threading.Barrier(4)

    def write(first: int) -> None:
        start.wait()
        for number in range(first, first + 40):
            ErasureJournal(journal.path).append(entry(number, "ann" if number % 2 else "bob"))

    def rename() -> None:
        start.wait()
        for number in range(40):
            ErasureJournal(journal.path).rename_actor("ann", f"one-{number}")

    threads = [threading.Thread(target=write, args=(first,)) for first in (100, 200, 300)]
    threads.append(threading.Thread(target=rename))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journal.entries()) == 121
    assert journal.path.stat().st_mode & 0o777 == 0o600
    left = sum(found.actor == "ann" for found in journal.entries())
    assert journal.rename_actor("ann", "nobody") == left
    assert "ann" not in {found.actor for found in journal.entries()}
