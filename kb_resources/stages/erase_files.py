"""Files of this installation that hold a document's bytes beside the blob store.

Belongs here: spooled uploads, temporary and left-over copies below the data folder, found by their
bytes. What does not: the folders that a store manages itself (database, blobs, models), and files
outside of the data folder, which belong to others and are only named.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kb_resources.errors import UnavailableError

_CHUNK = 1 << 20
SPOOL = "uploads"
"""Folder of the data folder where uploads wait for the worker, each in one named as its job."""


@dataclass(frozen=True, slots=True)
class ErasableFiles:
    """The data folder as far as files in it are nobody else's.

    Attributes:
        home: the data folder.
        managed: folders in it that are left to their own stores.
    """

    home: Path
    managed: tuple[Path, ...] = ()

    def delete(
        self, source_uri: str, held: Sequence[tuple[str, int]], jobs: Sequence[str] = ()
    ) -> dict[str, int]:
        """Delete files below the data folder with the bytes of a version, and the source there.

        Args:
            source_uri: path or URL that the document came from.
            held: SHA-256 hex and size in bytes of each version.
            jobs: uploads of the document, whose bytes may have become no version yet.

        Returns:
            How many files were deleted, and how many were looked at.

        Raises:
            UnavailableError: a file cannot be read or deleted.
        """
        sizes = {size for _, size in held}
        digests = {digest for digest, _ in held}
        counts = {"deleted": 0, "compared": 0}
        try:
            if (source := self._inside(source_uri)) is not None and source.is_file():
                source.unlink(missing_ok=True)
                counts["deleted"] += 1
            counts["deleted"] += sum(self._drop_upload(job_id) for job_id in jobs)
            for file in self._files():
                with suppress(FileNotFoundError):  # whoever made it has deleted it just now
                    if file.stat().st_size in sizes:
                        counts["compared"] += 1
                        if _digest(file) in digests:
                            file.unlink()
                            counts["deleted"] += 1
        except OSError as error:
            raise UnavailableError(
                f"A file could not be erased: {error}.",
                next_step="Give write access to the data folder, then run kb erasures --resume.",
            ) from error
        return counts

    def remains(self, source_uri: str) -> list[str]:
        """A sentence about the source where it still stands outside of the data folder."""
        if "://" in source_uri:
            return ["The document came from the web; what stands there is not ours to delete."]
        if source_uri.startswith("/") and Path(source_uri).exists():
            return ["The source file still exists outside of the data folder; delete it yourself."]
        return []

    def _drop_upload(self, job_id: str) -> int:
        """Delete the folder of one upload; returns how many files it held."""
        folder = self.home / SPOOL / job_id
        if not folder.is_dir():
            return 0
        number = sum(1 for entry in folder.rglob("*") if entry.is_file())
        while folder.is_dir():
            with suppress(FileNotFoundError):  # the worker, which took it, deletes it as well
                shutil.rmtree(folder)
        return number

    def _inside(self, source_uri: str) -> Path | None:
        if "://" in source_uri or not source_uri.startswith("/"):
            return None
        path = Path(source_uri).resolve()
        inside = path.is_relative_to(self.home.resolve())
        return path if inside and not self._is_managed(path) else None

    def _files(self) -> Iterator[Path]:
        """Regular files, without entering managed folders or following links."""
        todo = [self.home] if self.home.is_dir() else []
        while todo:
            try:
                entries = list(todo.pop().iterdir())
            except FileNotFoundError:
                continue
            for entry in entries:
                if entry.is_symlink() or self._is_managed(entry.absolute()):
                    continue
                if entry.is_dir():
                    todo.append(entry)
                elif entry.is_file():
                    yield entry

    def _is_managed(self, path: Path) -> bool:
        return any(path.is_relative_to(folder.absolute()) for folder in self.managed)


def _digest(file: Path) -> str:
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_CHUNK):
            found.update(block)
    return found.hexdigest()
