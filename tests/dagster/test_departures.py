"""Files that leave a watched folder, come back, or change their name."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_assets.folders.cursor import Cursor
from kb_assets.folders.departures import MASS_SETTLE_S
from kb_assets.folders.sensor import WatchedFolder, look_at_folder
from kb_resources import embed
from kb_resources.compose import open_line, open_retriever
from kb_resources.model import DocumentKey, Principal
from kb_resources.settings import load_settings
from kb_resources.stages import removal

if TYPE_CHECKING:
    from kb_resources.stages.line import Line

TEXT = "Paragraph {0} of the house rules says that every visitor signs the book at the entrance."


class Zone:
    """A dropzone over the real line, looked at on a clock of the test's own."""

    def __init__(self, line: Line, root: Path) -> None:
        self.line = line
        self.root = root
        self.watched = WatchedFolder("dropzone", root, settle_s=1.0, removal_settle_s=60.0)
        self.cursor = Cursor()
        self.now = datetime.now(UTC) + timedelta(minutes=1)
        self.notes: list[str] = []

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def look(self, *, after_s: float = 10.0, run: bool = True) -> list[DocumentKey]:
        """One tick after so many seconds, and what it asks for through the line."""
        self.now += timedelta(seconds=after_s)
        tick = look_at_folder(
            self.line,
            self.watched,
            self.cursor,
            frozenset(),
            now_ns=lambda: int(self.now.timestamp() * 1e9),
        )
        self.cursor, self.notes = tick.cursor, tick.notes
        if run:
            self.line.run_all(tick.keys)
        return tick.keys

    def states(self) -> dict[str, str]:
        with self.line.capabilities.database.transaction("pipeline") as conn:
            rows = conn.execute("select origin, state from kb.document order by 1").fetchall()
        return dict(rows)

    def found(self, query: str) -> list[str]:
        """Origins of what search finds."""
        settings = load_settings()
        database = self.line.capabilities.database
        hits = open_retriever(settings, database).search(
            query,
            scope="acme",
            principal=Principal("test"),
            k=20,
            mode="text",
            as_of=None,
            include_historical=False,
        )
        ids = {hit.document_id for hit in hits.hits}
        rows = self.line.rows([DocumentKey("acme", name) for name in ids])
        return sorted(row.origin for row in rows)


load_once = cache(embed.load)
"""The model, which is the same for all tests here, loaded by the first that needs it."""


@pytest.fixture
def line(environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    monkeypatch.setattr(embed, "load", load_once)
    with open_line(load_settings(), actor="test") as opened:
        yield opened


@pytest.fixture
def zone(line: Line, tmp_path: Path) -> Zone:
    return Zone(line, tmp_path / "dropzone")


@pytest.mark.requirement("P-70")
def test_a_deleted_file_leaves_search_after_a_while_and_its_history_stays(zone: Zone) -> None:
    """B32: index three, delete one at the source, look, search for its text."""
    for number in ("one", "two", "three"):
        zone.write(f"acme/{number}.txt", TEXT.format(number))
    keys = zone.look()
    assert zone.found("visitor signs the book") == ["one.txt", "three.txt", "two.txt"]
    passages = passage_count(zone)
    (zone.root / "acme" / "two.txt").unlink()
    zone.look()
    zone.look(after_s=49)
    assert "two.txt" in zone.found("visitor signs the book"), "a moment's absence is no removal"
    zone.look(after_s=11)
    assert zone.found("visitor signs the book") == ["one.txt", "three.txt"]
    assert zone.states() == {"one.txt": "indexed", "three.txt": "indexed", "two.txt": "removed"}
    assert passage_count(zone) == passages, "citations already given still resolve"
    (row,) = [r for r in zone.line.rows(keys) if r.origin == "two.txt"]
    assert not row.current
    assert zone.look() == []


def passage_count(zone: Zone) -> int:
    with zone.line.capabilities.database.transaction("pipeline") as conn:
        row = conn.execute("select count(*) from kb.passage").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.requirement("P-70")
def test_of_two_files_with_the_same_bytes_the_one_that_stays_is_found(zone: Zone) -> None:
    """B28: A and B say the same; A goes at the source; B has to be there."""
    zone.write("acme/a.txt", TEXT.format("same"))
    zone.look()
    zone.write("acme/b.txt", TEXT.format("same"))
    zone.look(after_s=90)
    assert zone.states() == {"a.txt": "indexed", "b.txt": "duplicate"}
    (zone.root / "acme" / "a.txt").unlink()
    zone.look()
    zone.look(after_s=61)
    assert zone.states() == {"a.txt": "removed", "b.txt": "indexed"}
    assert zone.found("visitor signs the book") == ["b.txt"]


def test_a_file_that_comes_back_brings_its_document_back(zone: Zone) -> None:
    path = zone.write("acme/a.txt", TEXT.format("first"))
    zone.write("acme/other.txt", TEXT.format("other"))
    zone.look()
    path.unlink()
    zone.look()
    zone.look(after_s=61)
    assert zone.states()["a.txt"] == "removed"
    zone.write("acme/a.txt", TEXT.format("first"))
    zone.look(after_s=120)
    assert zone.states()["a.txt"] == "indexed"
    assert "a.txt" in zone.found("visitor signs the book")

    path.unlink()
    zone.look()
    zone.look(after_s=61)
    zone.write("acme/a.txt", TEXT.format("changed meanwhile"))
    zone.look(after_s=120)
    assert "a.txt" in zone.found("changed meanwhile")
    with zone.line.capabilities.database.transaction("pipeline") as conn:
        versions = conn.execute(
            "select count(*) from kb.version join kb.document using (document_key) "
            "where origin = 'a.txt'"
        ).fetchone()
    assert versions == (2,)


def test_a_file_saved_by_replacing_it_is_never_taken_for_gone(zone: Zone) -> None:
    path = zone.write("acme/a.txt", TEXT.format("first"))
    zone.look()
    path.unlink()
    zone.look()
    zone.write("acme/a.txt", TEXT.format("second"))
    zone.look(after_s=30)
    zone.look(after_s=61)
    assert zone.states() == {"a.txt": "indexed"}
    assert zone.found("second") == ["a.txt"]


def test_what_a_person_removed_stays_removed_though_its_file_is_there(zone: Zone) -> None:
    zone.write("acme/a.txt", TEXT.format("first"))
    (key,) = zone.look()
    removal.remove(zone.line.capabilities, key, actor="ada", reason="Out of date.")
    zone.write("acme/b.txt", TEXT.format("other"))
    zone.write("acme/a.txt", TEXT.format("changed"))
    zone.look(after_s=120)
    zone.look()
    assert zone.states() == {"a.txt": "removed", "b.txt": "indexed"}


@pytest.mark.requirement("P-70")
def test_a_renamed_file_keeps_its_identity_and_follows_its_folders_readers(zone: Zone) -> None:
    zone.write("acme/kb.yaml", "folders:\n  board: {audiences: [board]}\n")
    path = zone.write("acme/plan.txt", TEXT.format("plan"))
    (key,) = zone.look()
    (zone.root / "acme" / "board").mkdir()
    path.rename(zone.root / "acme" / "board" / "strategy.txt")
    assert zone.look(after_s=120) == [key]
    (row,) = zone.line.rows([key])
    assert (row.origin, row.audiences, row.state) == ("board/strategy.txt", ["board"], "indexed")
    assert row.latest_version == 1
    assert zone.states() == {"board/strategy.txt": "indexed"}
    zone.look()
    zone.look(after_s=61)
    assert zone.states() == {"board/strategy.txt": "indexed"}
    with zone.line.capabilities.database.transaction("pipeline") as conn:
        events = [
            r[0] for r in conn.execute("select event from kb.lifecycle order by 1").fetchall()
        ]
    assert "renamed" in events
    assert "removed" not in events


def test_a_new_file_at_the_old_place_is_another_document(zone: Zone) -> None:
    path = zone.write("acme/plan.txt", TEXT.format("old"))
    (old,) = zone.look()
    path.rename(zone.root / "acme" / "plan-2025.txt")
    zone.look(after_s=90)
    zone.write("acme/plan.txt", TEXT.format("new"))
    (new,) = zone.look(after_s=90)
    assert new != old
    assert {r.key: r.origin for r in zone.line.rows([old, new])} == {
        old: "plan-2025.txt",
        new: "plan.txt",
    }
    zone.write("acme/plan.txt", TEXT.format("newer still"))
    zone.cursor = Cursor()
    assert zone.look(after_s=90) == [new]


def test_a_file_moved_and_changed_is_a_new_document(zone: Zone) -> None:
    path = zone.write("acme/a.txt", TEXT.format("first"))
    (old,) = zone.look()
    path.unlink()
    zone.write("acme/b.txt", TEXT.format("other"))
    (new,) = zone.look(after_s=90)
    assert new != old
    zone.look(after_s=61)
    assert zone.states() == {"a.txt": "removed", "b.txt": "indexed"}


def test_a_whole_folder_renamed_keeps_every_identity(zone: Zone) -> None:
    for number in range(12):
        zone.write(f"acme/old/{number}.txt", TEXT.format(number))
    before = set(zone.look(run=False))
    zone.line.run_all(list(before)[:12])
    (zone.root / "acme" / "old").rename(zone.root / "acme" / "new")
    after = set(zone.look(after_s=90))
    assert after == before
    zone.look(after_s=MASS_SETTLE_S + 1)
    assert set(zone.states().values()) == {"indexed"}
    assert all(origin.startswith("new/") for origin in zone.states())


def test_a_lost_share_takes_nothing_out_of_search_soon(zone: Zone) -> None:
    for number in range(12):
        zone.write(f"acme/{number}.txt", TEXT.format(number))
    zone.look()
    hidden = zone.root.parent / "unmounted"
    (zone.root / "acme").rename(hidden)
    zone.look(after_s=600)
    assert set(zone.states().values()) == {"indexed"}
    (zone.root / "acme").mkdir()  # an empty mount point
    zone.look()
    zone.look(after_s=600)
    assert set(zone.states().values()) == {"indexed"}
    assert "12 of 12 files are missing" in zone.notes[0]
    shutil.rmtree(zone.root / "acme")
    hidden.rename(zone.root / "acme")
    zone.look(after_s=MASS_SETTLE_S)
    assert set(zone.states().values()) == {"indexed"}
    shutil.rmtree(zone.root / "acme")
    (zone.root / "acme").mkdir()
    zone.look()
    zone.look(after_s=MASS_SETTLE_S + 1)
    assert set(zone.states().values()) == {"removed"}


def test_a_document_on_its_way_waits_with_its_removal(zone: Zone) -> None:
    path = zone.write("acme/a.txt", TEXT.format("first"))
    (key,) = zone.look(run=False)
    path.unlink()
    zone.look()
    zone.look(after_s=61)
    assert zone.states() == {"a.txt": "pending"}
    zone.line.run_all([key])  # the file is gone: it fails
    zone.look()
    assert zone.states() == {"a.txt": "removed"}


def test_a_lost_cursor_removes_nothing_and_forgets_no_absence(zone: Zone) -> None:
    path = zone.write("acme/a.txt", TEXT.format("first"))
    zone.write("acme/b.txt", TEXT.format("second"))
    zone.look()
    path.unlink()
    zone.look()
    zone.cursor = Cursor()
    zone.look(after_s=10)
    assert zone.states()["a.txt"] == "indexed"
    zone.cursor = Cursor()
    zone.look(after_s=61)
    assert zone.states() == {"a.txt": "removed", "b.txt": "indexed"}


def test_another_sources_documents_of_the_scope_are_left_alone(zone: Zone, tmp_path: Path) -> None:
    zone.write("acme/a.txt", TEXT.format("first"))
    zone.look()
    other = Zone(zone.line, tmp_path / "elsewhere")
    other.write("acme/b.txt", TEXT.format("second"))
    other.look()
    (other.root / "acme" / "b.txt").unlink()
    zone.look(after_s=120)
    zone.look(after_s=120)
    assert zone.states() == {"a.txt": "indexed", "b.txt": "indexed"}
    other.look()
    other.look(after_s=120)
    assert zone.states() == {"a.txt": "indexed", "b.txt": "removed"}
