"""Backup and restore: the same rows and bytes, damage noticed first, erasures repeated."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from kb import backing
from kb.erasing import open_eraser
from kb_resources.compose import open_line
from kb_resources.errors import ConflictError, InputError, IntegrityError, PolicyError
from kb_resources.stages.backup import check_backup

if TYPE_CHECKING:
    from kb_resources.model import DocumentKey
    from kb_resources.settings import Settings
    from tests.integration.line.conftest import Bench

LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave in a calendar year.\n"
SECRET = "# Case 17\n\nThe quibblewarbler was seen near the harbour on the second of May 2024.\n"
WHY = {"actor": "cli:ana", "reason": "asked"}


@pytest.fixture(autouse=True)
def no_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "no-dagster"))
    monkeypatch.delenv("KB_DAGSTER_URL", raising=False)


def _elsewhere(bench: Bench, empty_database: str, tmp_path: Path) -> Settings:
    """Another, empty installation, with the secret that was kept apart."""
    (tmp_path / "second").mkdir()
    shutil.copy2(bench.settings.home / "secret", tmp_path / "second" / "secret")
    return replace(
        bench.settings,
        home=tmp_path / "second",
        blob_url=str(tmp_path / "second-blobs"),
        database_url=empty_database,
        pipeline_database_url="",
        app_database_url="",
    )


def _rows(dsn: str) -> dict[str, list[tuple[object, ...]]]:
    tables = ("document", "version", "validity", "passage", "lex", "embedding", "lifecycle")
    with psycopg.connect(dsn) as conn:
        return {
            t: conn.execute(f"select t::text from kb.{t} t order by 1").fetchall() for t in tables
        }


def _blobs(folder: str) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()
    }


def _erase(settings: Settings, key: DocumentKey) -> None:
    with open_line(settings, actor="cli:ana") as line:
        open_eraser(settings, line).erase(key, **WHY)


@pytest.mark.requirement("P-66", "P-12")
def test_a_restored_installation_is_the_same(
    bench: Bench, empty_database: str, tmp_path: Path
) -> None:
    bench.ingest("leave.md", LEAVE)
    bench.ingest("leave.md", LEAVE + "\nUnused days lapse.\n")
    bench.ingest("case.md", SECRET, audiences=("hr",))
    made = backing.write(bench.settings, tmp_path / "kb.tar")
    assert made.blobs == 3
    assert (tmp_path / "kb.tar").stat().st_mode & 0o077 == 0
    there = _elsewhere(bench, empty_database, tmp_path)
    done = backing.restore(there, tmp_path / "kb.tar", force=False, journal=None)
    assert done.erased_again == 0
    assert not done.model_differs
    assert _rows(there.database_url) == _rows(bench.settings.database_url)
    assert _blobs(there.blob_url) == _blobs(bench.settings.blob_url)
    with open_line(there) as line:
        key = line.register(bench.request("leave.md"))
        line.run_all([key])
        assert line.rows([key])[0].state == "indexed"


@pytest.mark.requirement("P-66")
def test_what_was_erased_after_the_backup_stays_erased(
    bench: Bench, empty_database: str, tmp_path: Path
) -> None:
    bench.ingest("leave.md", LEAVE)
    key = bench.ingest("case.md", SECRET)
    backing.write(bench.settings, tmp_path / "kb.tar")
    _erase(bench.settings, key)
    there = _elsewhere(bench, empty_database, tmp_path)
    journal = bench.settings.home / "erasures.jsonl"
    done = backing.restore(there, tmp_path / "kb.tar", force=False, journal=journal)
    assert done.erased_again == 1
    with psycopg.connect(there.database_url) as conn:
        assert conn.execute(
            "select count(*) from kb.passage where text ~ 'harbour'"
        ).fetchone() == (0,)
    assert not [data for data in _blobs(there.blob_url).values() if b"quibblewarbler" in data]
    assert (there.home / "erasures.jsonl").exists()
    again = backing.restore(there, tmp_path / "kb.tar", force=True, journal=None)
    assert again.erased_again == 1, "the journal beside the database is enough"


@pytest.mark.requirement("P-66")
def test_a_knowledge_base_in_use_is_not_replaced_unless_forced(
    bench: Bench, tmp_path: Path
) -> None:
    bench.ingest("leave.md", LEAVE)
    backing.write(bench.settings, tmp_path / "kb.tar")
    with pytest.raises(InputError, match="exists"):
        backing.write(bench.settings, tmp_path / "kb.tar")
    before = _rows(bench.settings.database_url)
    with pytest.raises(ConflictError, match="not empty"):
        backing.restore(bench.settings, tmp_path / "kb.tar", force=False, journal=None)
    assert _rows(bench.settings.database_url) == before


@pytest.mark.requirement("P-66")
def test_damage_is_noticed_before_anything_changes(bench: Bench, tmp_path: Path) -> None:
    bench.ingest("leave.md", LEAVE)
    file = tmp_path / "kb.tar"
    backing.write(bench.settings, file)
    check_backup(file, None)
    whole = file.read_bytes()
    before = _rows(bench.settings.database_url)
    with tarfile.open(file) as archive:
        members = [member for member in archive if member.size]
    assert {member.name.split("/")[0] for member in members} == {
        "database.dump", "blobs", "manifest.json", "manifest.mac",
    }  # fmt: skip
    for member in members:
        for place in (0, member.size // 2, member.size - 1):
            data = bytearray(whole)
            data[member.offset_data + place] ^= 1
            file.write_bytes(data)
            with pytest.raises((IntegrityError, InputError, PolicyError)):
                backing.restore(bench.settings, file, force=True, journal=None)
            if member.name != "manifest.mac":
                with pytest.raises((IntegrityError, InputError)):
                    check_backup(file, None)
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises((IntegrityError, InputError)):
        backing.restore(bench.settings, file, force=True, journal=None)
    assert _rows(bench.settings.database_url) == before


def _rewritten(file: Path, target: Path, **parts: bytes) -> None:
    """The archive with other parts, and a manifest that fits them."""
    with tarfile.open(file) as archive:
        held = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    held |= {name.replace("__", "."): data for name, data in parts.items()}
    if "manifest__json" not in parts:
        manifest = json.loads(held["manifest.json"])
        manifest["parts"] |= {
            name: hashlib.sha256(data).hexdigest()
            for name, data in held.items()
            if name in manifest["parts"]
        }
        held["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(target, "w") as archive:
        for name, data in held.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, BytesIO(data))


@pytest.mark.requirement("P-66")
def test_an_archive_by_somebody_else_is_not_run(bench: Bench, tmp_path: Path) -> None:
    """A dump is a program: every digest may fit, and it still is not ours."""
    bench.ingest("leave.md", LEAVE)
    file, forged = tmp_path / "kb.tar", tmp_path / "forged.tar"
    backing.write(bench.settings, file)
    before = _rows(bench.settings.database_url)
    _rewritten(file, forged, database__dump=b"select 1;")
    with pytest.raises(PolicyError) as caught:
        backing.restore(bench.settings, forged, force=True, journal=None)
    assert caught.value.code == "backup_not_ours"
    other = replace(bench.settings, secret="another secret of more than 32 characters")
    with pytest.raises(PolicyError):
        backing.restore(other, file, force=True, journal=None)
    without = replace(bench.settings, home=tmp_path / "no-secret")
    with pytest.raises(PolicyError, match="no secret"):
        backing.restore(without, file, force=True, journal=None)
    assert _rows(bench.settings.database_url) == before
    backing.restore(other, file, force=True, journal=None, unsigned=True)
    assert _rows(bench.settings.database_url) == before


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{}",
        b"null",
        b'{"format": 1}',
        b'{"format": 1, "created_at": 1, "migration": 2, "model": 3, "parts": 4, "missing": 5}',
        b'{"format": 1, "created_at": "", "migration": "", "model": {}, "parts": [], "missing": 0}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
    ids=range(9),
)
def test_a_manifest_of_another_shape_is_told_by_type(
    bench: Bench, tmp_path: Path, manifest: bytes
) -> None:
    bench.ingest("leave.md", LEAVE)
    file, odd = tmp_path / "kb.tar", tmp_path / "odd.tar"
    backing.write(bench.settings, file)
    _rewritten(file, odd, manifest__json=manifest)
    with pytest.raises((IntegrityError, InputError)):
        check_backup(odd, None)
