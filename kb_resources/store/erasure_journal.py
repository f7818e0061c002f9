"""The erasure journal: one JSON line per erasure, outside the database.

With it a restored backup does not bring back what was erased after it was taken.
Belongs here: appending and reading lines. What does not: repeating erasures (`stages.erase`).
A line names the document by a keyed digest only, and carries the key, because the backup may be
older than it. Appends are one write with O_APPEND and fsync; see open(2) and fsync(2).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

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
        line = json.dumps(asdict(entry) | {"at": entry.at.isoformat()}) + "\n"
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode())
                os.fsync(handle)
            finally:
                os.close(handle)
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
        entries = list(read_entries(self.path.read_text("utf-8"), str(self.path)))
        changed = [entry for entry in entries if entry.actor == actor]
        if changed:
            fresh = ErasureJournal(self.path.with_suffix(".new"))
            fresh.path.unlink(missing_ok=True)
            for entry in entries:
                values: dict[str, Any] = asdict(entry)
                fresh.append(
                    JournalEntry(**values | ({"actor": alias} if entry.actor == actor else {}))
                )
            fresh.path.replace(self.path)
        return len(changed)


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
