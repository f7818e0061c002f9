"""A backup that is there is whole, and was never readable by others."""

from __future__ import annotations

import os
import stat
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb_resources.acquire import open_blob_store
from kb_resources.stages.backup import check_backup, write_backup


@pytest.mark.requirement("P-66")
def test_a_backup_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that loses its power must not leave an empty file under a backup's name."""
    file, store = tmp_path / "kb.tar", open_blob_store(tmp_path / "blobs")
    digest = store.put(b"hello")
    modes: list[int] = []
    synced: list[tuple[bool, list[str]]] = []
    sync = os.fsync

    def dump(_dsn: str, target: Path) -> None:
        (building,) = tmp_path.glob(".kb.tar*")
        modes.append(stat.S_IMODE(building.stat().st_mode))
        target.write_bytes(b"dump")

    def synced_now(descriptor: int) -> None:
        sync(descriptor)
        for building in tmp_path.glob(".kb.tar*"):
            with tarfile.open(building) as archive:
                synced.append((file.exists(), archive.getnames()))

    monkeypatch.setattr("kb_resources.store.backup.dump_schema", dump)
    monkeypatch.setattr(os, "fsync", synced_now)
    before = os.umask(0)
    try:
        made = write_backup(
            file, dsn="", blobs=lambda _: store, wanted=lambda: [("acme", digest)], journal="",
            model={}, migration="0001", now=datetime(2026, 5, 1, tzinfo=UTC), seal=lambda _: "mac",
        )  # fmt: skip
    finally:
        os.umask(before)
    assert modes == [0o600]
    [(there_already, names)] = synced
    assert not there_already
    assert names[-2:] == ["manifest.json", "manifest.mac"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert check_backup(file, lambda _: "mac") == made
    assert [entry.name for entry in tmp_path.glob(".kb.tar*")] == []
