"""Watched folders: every settled file becomes a document once, whatever the daemon forgets."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from kb_assets.folders import listing
from kb_assets.folders.cursor import Cursor
from kb_assets.folders.listing import is_partial, settled, walk
from kb_assets.folders.mapping import parse_map
from kb_assets.folders.sensor import Tick, WatchedFolder, folder_sensor, look_at_folder
from kb_resources.errors import InputError
from kb_resources.model import DocumentKey
from kb_resources.stages import scopes
from kb_resources.stages.line import Line

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant


class Zone:
    """A dropzone with its sensor, ticked by hand as the daemon does it."""

    def __init__(self, plant: Plant, root: Path, **options: Any) -> None:
        self.plant = plant
        self.root = root
        watched = WatchedFolder("dropzone", root, settle_s=0.0, **options)
        self.sensor = folder_sensor(lambda: watched, name="dropzone", description="test")
        self.cursor: str | None = None
        self.requested: list[DocumentKey] = []
        self.said: str | None = None

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tick(self) -> list[DocumentKey]:
        """One tick; returns the documents that it asked a run for."""
        with dg.build_sensor_context(
            instance=self.plant.instance, cursor=self.cursor, resources={"line": self.plant.line}
        ) as context:
            result = self.sensor(context)
        assert isinstance(result, dg.SensorResult)
        self.said = result.skip_reason and result.skip_reason.skip_message
        self.cursor = result.cursor
        for adding in result.dynamic_partitions_requests or ():
            self.plant.instance.add_dynamic_partitions(
                adding.partitions_def_name, list(adding.partition_keys)
            )
        requests = list(result.run_requests or ())
        assert len(requests) <= 1
        keys = [k for r in requests for k in self.plant.line.batch(r.run_config["batch_id"])]
        self.requested += keys
        return keys

    def tick_until_quiet(self) -> list[DocumentKey]:
        found: list[DocumentKey] = []
        while keys := self.tick():
            found += keys
        return found


@pytest.fixture
def zone(plant: Plant, tmp_path: Path) -> Zone:
    return Zone(plant, tmp_path / "dropzone")


def settle_as_indexed(plant: Plant, root: Path) -> None:
    """Give every document the version that acquire would have, in one go, and end its way."""
    with plant.line.capabilities.database.transaction("owner") as conn:
        rows = conn.execute("select document_key, scope_id, source_uri from kb.document").fetchall()
        for key, scope_id, uri in rows:
            data = Path(uri).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            conn.execute(
                "insert into kb.version (document_key, scope_id, version, digest, media_type, "
                "size_bytes) values (%(key)s, %(scope)s, coalesce((select max(version) from "
                "kb.version where document_key = %(key)s), 0) + 1, %(digest)s, 'text/plain', "
                "%(size)s) on conflict do nothing",
                {"key": key, "scope": scope_id, "digest": digest, "size": len(data)},
            )
        conn.execute(
            "update kb.document d set state = 'indexed', latest_version = "
            "(select max(version) from kb.version v where v.document_key = d.document_key)"
        )


@pytest.mark.requirement("P-70", "B-12")
def test_a_thousand_files_and_twenty_restarts_give_each_document_one_run(zone: Zone) -> None:
    names = [f"{'acme' if n % 3 else 'beta'}/box-{n % 7}/note-{n}.txt" for n in range(1000)]
    chance = random.Random(7)
    cursors: list[str | None] = [None]
    for place in range(0, 1000, 50):  # files keep coming while the daemon restarts
        for name in names[place : place + 50]:
            zone.write(name, f"note {name}")
        zone.cursor = chance.choice(cursors)  # kept, lost or older than the last one
        zone.tick()
        cursors.append(zone.cursor)
    zone.tick_until_quiet()

    counted = Counter(zone.requested)
    assert len(counted) == 1000
    assert set(counted.values()) == {1}
    known = set(zone.plant.instance.get_dynamic_partitions("kb_documents"))
    assert known == {str(key) for key in counted}

    settle_as_indexed(zone.plant, zone.root)
    for _ in range(20):
        zone.cursor = chance.choice([*cursors, "not a cursor", ""])
        assert zone.tick_until_quiet() == []
    for name in names[:3]:
        zone.write(name, "changed")
    assert len(zone.tick_until_quiet()) == 3


def test_a_folder_that_rests_is_not_compared_again(
    zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone.write("acme/a.txt", "one")
    zone.tick_until_quiet()
    settle_as_indexed(zone.plant, zone.root)
    zone.tick()
    resting = zone.cursor
    assert Cursor.load(resting).scopes["acme"].listing

    def compared(*arguments: object, **options: object) -> None:
        raise AssertionError("the ledger was asked")

    monkeypatch.setattr("kb_assets.folders.sensor.look", compared)
    assert zone.tick() == []
    assert zone.cursor == resting
    zone.write("acme/b.txt", "two")
    with pytest.raises(AssertionError, match="the ledger was asked"):
        zone.tick()


@pytest.mark.requirement("P-70")
@pytest.mark.parametrize(
    "name",
    [
        "half.pdf.part", "half.crdownload", ".hidden", "~$report.docx", "x.tmp", "report.txt~",
        "kb.yaml", "Thumbs.db", ".dir/inside.txt",
    ],
)  # fmt: skip
def test_names_of_unfinished_files_are_never_taken(zone: Zone, name: str) -> None:
    zone.write(f"acme/{name}", "audiences: [staff]" if name == "kb.yaml" else "text")
    assert zone.tick_until_quiet() == []


def test_a_finished_download_is_taken_under_its_final_name(zone: Zone) -> None:
    part = zone.write("acme/report.txt.part", "text")
    assert zone.tick() == []
    part.rename(part.with_suffix(""))
    (key,) = zone.tick()
    assert key.document_id.startswith("report-txt")


@pytest.mark.requirement("P-70")
def test_a_file_being_written_waits_until_it_has_stood_still(tmp_path: Path) -> None:
    path = tmp_path / "slow.txt"
    path.write_text("first half")
    now = path.stat().st_mtime_ns
    entries = list(walk(tmp_path, now + 1))
    assert settled(entries, now + int(2.9e9), 3.0) == []
    assert [e.relative for e in settled(entries, now + int(3.1e9), 3.0)] == ["slow.txt"]


def test_a_copy_with_an_old_date_and_a_folder_moved_in_are_not_lost(
    zone: Zone, tmp_path: Path
) -> None:
    zone.write("acme/new.txt", "new")
    zone.tick_until_quiet()
    settle_as_indexed(zone.plant, zone.root)
    zone.tick_until_quiet()
    elsewhere = tmp_path / "elsewhere" / "archive"
    elsewhere.mkdir(parents=True)
    (elsewhere / "old.txt").write_text("old")
    os.utime(elsewhere / "old.txt", (1, 1))
    os.utime(zone.write("acme/dated.txt", "dated"), (1, 1))
    elsewhere.rename(zone.root / "acme" / "archive")
    found = {key.document_id.rsplit("-", 1)[0] for key in zone.tick_until_quiet()}
    assert found == {"archive-old-txt", "dated-txt"}


def test_a_change_while_the_document_is_on_its_way_is_taken_afterwards(zone: Zone) -> None:
    path = zone.write("acme/a.txt", "first")
    (key,) = zone.tick()
    zone.write("acme/a.txt", "second")
    assert zone.tick() == []  # pending: not asked for twice
    path.write_text("first")  # as acquire read it, before the change
    settle_as_indexed(zone.plant, zone.root)
    path.write_text("second")
    assert zone.tick() == [key]


def test_one_full_scope_does_not_starve_the_others(zone: Zone) -> None:
    for n in range(400):
        zone.write(f"big/{n}.txt", f"{n}")
    zone.write("small/one.txt", "one")
    first = zone.tick()
    assert "small" in {key.scope for key in first}
    assert len(first) <= 200


def test_few_files_go_before_bulk(zone: Zone, plant: Plant) -> None:
    zone.write("acme/one.txt", "one")
    with dg.build_sensor_context(instance=plant.instance, resources={"line": plant.line}) as ctx:
        result = zone.sensor(ctx)
    (request,) = result.run_requests or ()
    assert request.tags["dagster/priority"] == "10"
    assert request.tags["kb/scope"] == "acme"


def test_folders_that_are_no_scope_names_and_links_are_passed_over(
    zone: Zone, tmp_path: Path
) -> None:
    zone.write("Not A Scope/a.txt", "text")
    (tmp_path / "secret.txt").write_text("secret")
    zone.write("acme/a.txt", "text")
    (zone.root / "acme" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (zone.root / "linked").symlink_to(tmp_path)
    (zone.root / "stray.txt").write_text("text")
    assert {key.scope for key in zone.tick_until_quiet()} == {"acme"}
    assert len(zone.requested) == 1
    assert zone.said is not None
    assert "'Not A Scope' is not a scope name" in zone.said
    assert "linked and 1 more: not in the folder of a scope" in zone.said


def test_the_mapping_file_says_whom_files_are_for(zone: Zone) -> None:
    zone.write("acme/kb.yaml", "audiences: [staff]\nfolders:\n  hr/board: {audiences: [board]}\n")
    for name in ("a.txt", "hr/b.txt", "hr/board/c.txt", "hr/boardroom/d.txt"):
        zone.write(f"acme/{name}", name)
    rows = zone.plant.line.rows(zone.tick_until_quiet())
    assert {row.origin: row.audiences for row in rows} == {
        "a.txt": ["staff"],
        "hr/b.txt": ["staff"],
        "hr/board/c.txt": ["board"],
        "hr/boardroom/d.txt": ["staff"],
    }


@pytest.mark.parametrize(
    "text",
    [
        "audiences: staff",
        "audience: [staff]",
        "audiences: ['two words']",
        "[1, 2]",
        "folders: {hr: [hr]}",
        "trusted_by: me",
        "audiences: [",
        "language: German",
        "folders: {hr: {language: de-AT-x}}",
    ],
)
def test_a_mapping_file_that_does_not_fit_holds_its_folder_back(zone: Zone, text: str) -> None:
    with pytest.raises(InputError):
        parse_map(text)
    zone.write("acme/kb.yaml", text)
    zone.write("acme/a.txt", "text")
    zone.write("beta/b.txt", "text")
    assert {key.scope for key in zone.tick_until_quiet()} == {"beta"}


def test_a_changed_mapping_reaches_documents_that_did_not_change(zone: Zone) -> None:
    zone.write("acme/a.txt", "a")
    zone.write("acme/b.txt", "b")
    zone.tick_until_quiet()
    settle_as_indexed(zone.plant, zone.root)
    zone.tick_until_quiet()
    zone.write("acme/kb.yaml", "audiences: [staff]\n")
    keys = zone.tick_until_quiet()
    assert len(keys) == 2
    assert {tuple(row.audiences) for row in zone.plant.line.rows(keys)} == {("staff",)}


def test_a_lost_cursor_never_widens_who_may_read(zone: Zone) -> None:
    """Somebody restricted a document by hand; without a cursor the sensor must not undo that."""
    zone.write("acme/a.txt", "a")
    (key,) = zone.tick_until_quiet()
    settle_as_indexed(zone.plant, zone.root)
    with zone.plant.line.capabilities.database.transaction("owner") as conn:
        conn.execute("update kb.document set audiences = array['board']")
    zone.cursor = None
    assert zone.tick_until_quiet() == []
    assert zone.plant.line.rows([key])[0].audiences == ["board"]


def test_a_scope_that_is_closed_or_cannot_be_read_holds_back_no_other(
    zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = zone.plant.line.capabilities.database
    for scope in ("acme", "denied", "zeta"):
        zone.write(f"{scope}/a.txt", scope)
    zone.tick_until_quiet()
    settle_as_indexed(zone.plant, zone.root)
    zone.tick_until_quiet()
    scopes.close(database, "acme", datetime.now(UTC), actor="test")
    for scope in ("acme", "denied", "zeta"):
        zone.write(f"{scope}/b.txt", f"{scope} once more")

    def walked(root: Path, now_ns: int) -> Iterable[listing.Entry]:
        if root.name == "denied":
            raise PermissionError(13, "Permission denied", str(root / "sub"))
        return walk(root, now_ns)

    monkeypatch.setattr(listing, "walk", walked)
    assert {key.scope for key in zone.tick_until_quiet()} == {"zeta"}
    assert zone.said is not None
    assert "acme" in zone.said
    assert "closed" in zone.said
    assert "denied: " in zone.said
    monkeypatch.undo()
    scopes.reopen(database, "acme", actor="test")
    assert {key.scope for key in zone.tick_until_quiet()} == {"acme", "denied"}


def test_a_mapping_file_that_is_exchanged_for_another_opens_nothing_meanwhile(
    plant: Plant, tmp_path: Path
) -> None:
    folder = tmp_path / "handbook"
    watched = WatchedFolder("handbook", folder, scope="acme", settle_s=3.0)
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "kb.yaml").write_text("audiences: [staff]\n")

    def tick(cursor: Cursor, seconds: float) -> Tick:
        """So many seconds after the folder's last change."""
        stat = folder.stat()
        at = max(stat.st_mtime_ns, stat.st_ctime_ns) + int(seconds * 1e9)
        return look_at_folder(plant.line, watched, cursor, frozenset(), now_ns=lambda: at)

    first = tick(Cursor(), 60)
    [key] = first.keys
    settle_as_indexed(plant, folder)
    (folder / "kb.yaml").unlink()
    between = tick(first.cursor, 1)
    assert between.keys == []
    assert plant.line.rows([key])[0].audiences == ["staff"]
    assert tick(between.cursor, 60).keys == [key]
    assert plant.line.rows([key])[0].audiences == [], "it is gone for good: open, as documented"


def test_a_missing_dropzone_is_a_skip_and_no_error(plant: Plant, tmp_path: Path) -> None:
    missing = WatchedFolder("dropzone", tmp_path / "nowhere")
    sensor = folder_sensor(lambda: missing, name="dropzone", description="test")
    with dg.build_sensor_context(instance=plant.instance, resources={"line": plant.line}) as ctx:
        result = sensor(ctx)
    assert isinstance(result, dg.SkipReason)


def test_a_tick_answers_in_time_and_the_next_one_goes_on(line: Line, tmp_path: Path) -> None:
    for n in range(30):
        path = tmp_path / "dropzone" / "acme" / f"{n}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(n))
    watched = WatchedFolder("dropzone", tmp_path / "dropzone", settle_s=0.0)
    seconds = iter(range(0, 10_000, 2))  # a clock on which every look takes two seconds
    keys: list[DocumentKey] = []
    cursor, known = Cursor(), frozenset[str]()
    for _ in range(8):
        tick = look_at_folder(
            line, watched, cursor, known, now_ns=time.time_ns, monotonic=lambda: next(seconds)
        )
        assert len(tick.keys) < 30
        keys += tick.keys
        cursor, known = tick.cursor, known | _names(tick.keys)
    assert len(keys) == len(set(keys)) == 30


def _names(keys: Iterable[DocumentKey]) -> frozenset[str]:
    return frozenset(str(key) for key in keys)


def test_names_that_look_unfinished() -> None:
    assert is_partial("A.PART")
    assert not is_partial("partial.pdf")
    assert not is_partial("apart")
