"""The blob store's contract, for folders and for anything fsspec reaches."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pytest

from kb_resources.acquire import BlobStore, FolderBlobStore, blobs, open_blob_store
from kb_resources.errors import InputError, IntegrityError, NotFound, UnavailableError


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "folder":
        return open_blob_store(tmp_path / "blobs")
    return open_blob_store(f"memory://{uuid.uuid4().hex}/blobs")


@pytest.mark.requirement("P-58")
def test_what_was_put_comes_back(store: BlobStore) -> None:
    digest = store.put(b"hello")
    assert digest == hashlib.sha256(b"hello").hexdigest()
    assert store.get(digest) == b"hello"
    assert store.exists(digest)


def test_blobs_are_listed_and_deleted_once(store: BlobStore) -> None:
    assert list(store.iter()) == []
    digests = {store.put(b"one"), store.put(b"two"), store.put(b"one")}
    assert set(store.iter()) == digests
    assert len(digests) == 2
    for digest in digests:
        assert store.delete(digest)
        assert not store.delete(digest)
        assert not store.exists(digest)


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    store = FolderBlobStore(tmp_path)
    digest = store.put(b"hello")
    folder = tmp_path / digest[:2]
    for name, day in ((".incoming-dead", 1), (".incoming-alive", 3)):
        (folder / name).write_bytes(b"hel")
        at = datetime(2026, 5, day, tzinfo=UTC).timestamp()
        os.utime(folder / name, (at, at))
    os.utime(folder / digest[2:], (0, 0))
    assert store.sweep(datetime(2026, 5, 2, tzinfo=UTC)) == 1
    assert sorted(file.name for file in folder.iterdir()) == [".incoming-alive", digest[2:]]
    assert FolderBlobStore(tmp_path / "none").sweep(datetime(2026, 5, 2, tzinfo=UTC)) == 0


def test_a_folder_made_for_a_blob_is_made_durable_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(blobs, "_sync_folder", synced.append)
    root = tmp_path / "blobs"
    digest = FolderBlobStore(root).put(b"hello")
    assert synced == [root, root / digest[:2]]


def test_only_digests_are_listed() -> None:
    place = f"memory://{uuid.uuid4().hex}/blobs"
    store = open_blob_store(place)
    digest = store.put(b"hello")
    filesystem, root = fsspec.core.url_to_fs(place)
    filesystem.pipe_file(f"{root}/zz/{'z' * 62}", b"of somebody else")
    assert list(store.iter()) == [digest]
    assert store.sweep(datetime(2026, 5, 2, tzinfo=UTC)) == 0


def test_a_missing_blob_is_not_found(store: BlobStore) -> None:
    with pytest.raises(NotFound):
        store.get("0" * 64)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 65])
def test_no_path_hides_in_a_digest(store: BlobStore, digest: str) -> None:
    for call in (store.get, store.exists, store.delete):
        with pytest.raises(InputError):
            call(digest)


def test_changed_bytes_are_an_integrity_error(tmp_path: Path) -> None:
    store = FolderBlobStore(tmp_path)
    digest = store.put(b"hello")
    (tmp_path / digest[:2] / digest[2:]).write_bytes(b"hellO")
    with pytest.raises(IntegrityError):
        store.get(digest)


def test_a_known_blob_is_left_untouched(tmp_path: Path) -> None:
    store = FolderBlobStore(tmp_path)
    digest = store.put(b"hello")
    file = tmp_path / digest[:2] / digest[2:]
    before = file.stat()
    store.put(b"hello")
    after = file.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_writers_of_the_same_bytes_do_not_disturb_each_other(tmp_path: Path) -> None:
    store = FolderBlobStore(tmp_path)
    data = os.urandom(200_000)
    digests: list[str] = []
    threads = [threading.Thread(target=lambda: digests.append(store.put(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 8
    assert list(store.iter()) == list(set(digests))
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [digests[0][2:]]
    assert store.get(digests[0]) == data


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork and RLIMIT_FSIZE")
def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A file size limit makes the write fail half way, as a full disk does."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            import resource
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
            try:
                FolderBlobStore(tmp_path).put(b"x" * 50_000)
                os.write(writer, b"stored")
            except UnavailableError as error:
                os.write(writer, b"retry later" if error.retryable else b"no retry")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    answer = os.read(reader, 100)
    os.close(reader)
    assert answer == b"retry later"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_unknown_storage_scheme_says_what_to_install() -> None:
    with pytest.raises(UnavailableError) as error:
        open_blob_store("nosuchscheme://bucket/blobs")
    assert "fsspec" in str(error.value)
