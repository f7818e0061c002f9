"""Source bytes by their SHA-256: written once, verified on every read.

Belongs here: the store's contract and its folder form. Other places (S3, GCS, Azure) come through
fsspec in `remote.py`. The write is temporary file, fsync, rename, fsync of the folder; see
https://lwn.net/Articles/457667/.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from kb_resources.errors import InputError, IntegrityError, NotFound, UnavailableError

DIGEST = re.compile(r"[0-9a-f]{64}")
_TEMPORARY = ".incoming-"


class BlobStore(Protocol):
    """Where source bytes are kept, addressed by content."""

    def put(self, data: bytes) -> str:
        """Store bytes and return their SHA-256 hex; a known blob is left untouched."""
        ...

    def get(self, digest: str) -> bytes:
        """The bytes of a digest, verified.

        Raises:
            NotFound: there is no such blob.
            IntegrityError: the stored bytes no longer match the digest.
        """
        ...

    def exists(self, digest: str) -> bool:
        """Whether the blob is there (its content is not read)."""
        ...

    def delete(self, digest: str) -> bool:
        """Remove a blob; False when there was none."""
        ...

    def iter(self) -> Iterator[str]:
        """Digests of all blobs, in no particular order."""
        ...

    def sweep(self, before: datetime) -> int:
        """Delete what writers that were killed left half written before an aware instant.

        Returns:
            How many files that were.
        """
        ...


def open_blob_store(location: str | Path) -> BlobStore:
    """The store at a folder or, with `scheme://`, at a URL that fsspec knows."""
    if "://" in str(location):
        from kb_resources.acquire.remote import RemoteBlobStore

        return RemoteBlobStore(str(location))
    return FolderBlobStore(Path(location))


class FolderBlobStore:
    """Blobs as files `ab/cdef…` below one folder of mode 0700.

    Args:
        root: the folder, made when missing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes) -> str:
        """Store bytes; atomic and durable, and harmless when two writers race.

        Raises:
            UnavailableError: the disk is full or not writable; nothing half written stays.
        """
        digest = hashlib.sha256(data).hexdigest()
        target = self._path(digest)
        if target.exists():
            return digest
        try:
            is_new = not target.parent.exists()
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_new:
                _sync_folder(self._root)
            self._write(data, target)
        except OSError as error:
            raise UnavailableError(
                f"A blob could not be written: {error.strerror or error}.",
                next_step=f"Make room or grant write access in {self._root}, then try again.",
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """See `BlobStore.get`."""
        try:
            data = self._path(digest).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(f"There is no blob {digest}.", next_step="Ingest it again.") from error
        except OSError as error:
            raise UnavailableError(
                f"Blob {digest} could not be read: {error.strerror or error}.",
                next_step="Check the disk, then try again.",
            ) from error
        verify(data, digest)
        return data

    def exists(self, digest: str) -> bool:
        """See `BlobStore.exists`."""
        return self._path(digest).is_file()

    def delete(self, digest: str) -> bool:
        """See `BlobStore.delete`."""
        try:
            self._path(digest).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise UnavailableError(
                f"Blob {digest} could not be deleted: {error.strerror or error}.",
                next_step=f"Grant write access in {self._root}, then try again.",
            ) from error
        return True

    def iter(self) -> Iterator[str]:
        """See `BlobStore.iter`."""
        if not self._root.is_dir():
            return
        for folder in self._root.iterdir():
            if folder.is_dir() and len(folder.name) == 2:
                for file in folder.iterdir():
                    if DIGEST.fullmatch(folder.name + file.name):
                        yield folder.name + file.name

    def sweep(self, before: datetime) -> int:
        """See `BlobStore.sweep`."""
        swept = 0
        for file in self._root.glob(f"??/{_TEMPORARY}*"):
            with contextlib.suppress(FileNotFoundError):  # its writer lives, and is through
                if file.stat().st_mtime < before.timestamp():
                    file.unlink()
                    swept += 1
        return swept

    def _path(self, digest: str) -> Path:
        checked = valid_digest(digest)
        return self._root / checked[:2] / checked[2:]

    def _write(self, data: bytes, target: Path) -> None:
        handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        _sync_folder(target.parent)


def valid_digest(digest: str) -> str:
    """The digest, or InputError when it is no lowercase SHA-256 (so no path can hide in it)."""
    if not DIGEST.fullmatch(digest):
        raise InputError(
            f"{digest!r} is not a digest.", next_step="Give 64 lowercase hexadecimal digits."
        )
    return digest


def verify(data: bytes, digest: str) -> None:
    """Raise IntegrityError unless the bytes have the digest."""
    actual = hashlib.sha256(data).hexdigest()
    if actual != digest:
        raise IntegrityError(
            f"Blob {digest} holds bytes of {actual}.",
            next_step="Restore it from a backup or ingest the source again.",
        )


def _sync_folder(folder: Path) -> None:
    """Make a rename durable where the platform can sync folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
