"""Blobs in an object store that fsspec knows, under the contract of `blobs.py`.

Belongs here: the fsspec form of the store. Credentials come from the environment of the process, as
fsspec's implementations read them. Object stores write atomically, so a put is one call; see
https://filesystem-spec.readthedocs.io/en/latest/api.html.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kb_resources.acquire.blobs import DIGEST, valid_digest, verify
from kb_resources.errors import NotFound, UnavailableError


class RemoteBlobStore:
    """Blobs below a URL such as `s3://bucket/prefix` or `memory://blobs`.

    Args:
        url: where the blobs are.
        **options: storage options for fsspec.

    Raises:
        UnavailableError: no fsspec implementation for the URL's scheme is installed.
    """

    def __init__(self, url: str, **options: Any) -> None:
        import fsspec

        try:
            self._fs, self._root = fsspec.core.url_to_fs(url, **options)
        except (ImportError, ValueError) as error:
            raise UnavailableError(
                f"{url.split('://')[0]!r} is no storage this installation can reach: {error}.",
                next_step="Install the fsspec package of that storage (s3fs, gcsfs, adlfs).",
            ) from error

    def put(self, data: bytes) -> str:
        """See `BlobStore.put`."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            if not self._fs.exists(path):
                self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
                self._fs.pipe_file(path, data)
        except OSError as error:
            raise _unavailable("written", digest, error) from error
        return digest

    def get(self, digest: str) -> bytes:
        """See `BlobStore.get`."""
        try:
            data = bytes(self._fs.cat_file(self._path(digest)))
        except FileNotFoundError as error:
            raise NotFound(f"There is no blob {digest}.", next_step="Ingest it again.") from error
        except OSError as error:
            raise _unavailable("read", digest, error) from error
        verify(data, digest)
        return data

    def exists(self, digest: str) -> bool:
        """See `BlobStore.exists`."""
        return bool(self._fs.exists(self._path(digest)))

    def delete(self, digest: str) -> bool:
        """See `BlobStore.delete`."""
        try:
            self._fs.rm_file(self._path(digest))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unavailable("deleted", digest, error) from error
        return True

    def iter(self) -> Iterator[str]:
        """See `BlobStore.iter`."""
        if not self._fs.exists(self._root):
            return
        for path in self._fs.find(self._root):
            folder, _, name = str(path).rpartition("/")
            digest = folder[-2:] + name
            if DIGEST.fullmatch(digest):
                yield digest

    def sweep(self, before: datetime) -> int:  # noqa: ARG002
        """See `BlobStore.sweep`; object stores show nothing that is half written."""
        return 0

    def _path(self, digest: str) -> str:
        checked = valid_digest(digest)
        return f"{self._root.rstrip('/')}/{checked[:2]}/{checked[2:]}"


def _unavailable(verb: str, digest: str, error: OSError) -> UnavailableError:
    return UnavailableError(
        f"Blob {digest} could not be {verb}: {error}.",
        next_step="Check the object store and its credentials, then try again.",
    )
