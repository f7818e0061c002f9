"""The erasure journal: one JSON line per erasure, outside the database.

With it a restored backup does not bring back what was erased after it was taken.
Belongs here: appending and reading lines. What does not: repeating erasures (`stages.erase`).
A line names the document by a keyed digest only, and carries the key, because the backup may be
older than it. Whoever writes holds the lock of the file (flock(2)) and ends with fsync(2).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from kb_resources.errors import IntegrityError, UnavailableError

FILE_NAME = "erasures.jsonl"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One erasure.

    Attributes:
        erasure_id: of the certificate.
        scope: scope name.
        id_digest: keyed digest of the document's name.
        salt: key of that digest, lowercase hex.
        actor: who asked.
        reason: why.
        at: when it began, aware; documents made later are others.
    """

    erasure_id: str
    scope: str
    id_digest: str
    salt: str
    actor: str
    reason: str
    at: datetime


class ErasureJournal:
    """Erasures on disk, append-only.

    Args:
        path: the file, of mode 0600, made when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: JournalEntry) -> None:
        """Write one line and make it durable.

        Raises:
            UnavailableError: it cannot be written.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _held(self.path) as handle:
                _write(handle, _whole_lines(handle), [entry])
        except OSError as error:
            raise UnavailableError(
                f"The erasure journal {self.path} cannot be written: {error.strerror or error}.",
                next_step="Give write access and run kb erase again; it goes on where it stopped.",
            ) from error

    def entries(self) -> list[JournalEntry]:
        """All erasures in order of time; empty where there is no journal.

        Raises:
            IntegrityError: a line cannot be read.
        """
        if not self.path.exists():
            return []
        return list(merged(read_entries(self.path.read_text("utf-8"), str(self.path))))

    def rename_actor(self, actor: str, alias: str) -> int:
        """Write the alias for an actor; lines changed. Replaces the file in one step."""
        if not self.path.exists():
            return 0
        with _held(self.path):
            entries = list(read_entries(self.path.read_text("utf-8"), str(self.path)))
            renamed = [
                replace(entry, actor=alias) if entry.actor == actor else entry for entry in entries
            ]
            if renamed != entries:
                fresh = self.path.with_suffix(".new")
                fresh.unlink(missing_ok=True)
                with _held(fresh) as handle:
                    _write(handle, 0, renamed)
                fresh.replace(self.path)
        return sum(old != new for old, new in zip(entries, renamed, strict=True))


@contextmanager
def _held(path: Path) -> Iterator[int]:
    """The file, open and locked; it is still the one of that name."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_still(path, handle):
                yield handle
                return
        finally:
            os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:  # replaced while we waited
        return False


def _whole_lines(handle: int) -> int:
    """Where the last whole line ends; behind it a crash may have left a part of one."""
    size = os.fstat(handle).st_size
    held = os.pread(handle, size, 0)
    return held.rfind(b"\n") + 1


def _write(handle: int, at: int, entries: Iterable[JournalEntry]) -> None:
    """Lines from an offset on, in place of what stands there, and on the disk."""
    lines = "".join(
        json.dumps(asdict(entry) | {"at": entry.at.isoformat()}) + "\n" for entry in entries
    ).encode()
    os.ftruncate(handle, at)
    while lines:
        written = os.pwrite(handle, lines, at)
        lines, at = lines[written:], at + written
    os.fsync(handle)


def read_entries(text: str, name: str) -> Iterator[JournalEntry]:
    """Entries of a journal's text; a last line cut off by a crash is passed over.

    Raises:
        IntegrityError: another line cannot be read.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            yield JournalEntry(**row | {"at": datetime.fromisoformat(row["at"])})
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines):
                return
            raise IntegrityError(
                f"Line {number} of {name} is no erasure.",
                next_step="Restore the journal from its copy in the newest backup.",
            ) from error


def merged(*journals: Iterable[JournalEntry]) -> Iterator[JournalEntry]:
    """Entries of several journals, each erasure once, in order of time."""
    known = {entry.erasure_id: entry for journal in journals for entry in journal}
    yield from sorted(known.values(), key=lambda entry: (entry.at, entry.erasure_id))
