"""One file that holds an installation, and the way back.

A tar archive: `manifest.json` with a SHA-256 of every part, `manifest.mac` with its keyed digest,
the schema's dump, the blobs by scope and digest, the erasure journal, the model's identity. A dump
is a program that its restorer runs as the schema's owner, so whoever made it is checked, and
everything else too, before anything of the target is touched. Belongs here: the archive and the
order of a restore. What does not: pg_dump (`store.backup`), repeating erasures (`erase`), the key.
Secrets are not part of it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from kb_resources.acquire import BlobStore
from kb_resources.errors import (
    ConflictError,
    InputError,
    IntegrityError,
    NotFound,
    PolicyError,
    UnavailableError,
)
from kb_resources.model import validate_scope
from kb_resources.store import backup as programs
from kb_resources.store.erasure_journal import JournalEntry, read_entries

FORMAT = 1
_MANIFEST, _DUMP, _JOURNAL = "manifest.json", "database.dump", "erasures.jsonl"
_SEAL = "manifest.mac"
Seal = Callable[[bytes], str]
"""Keyed digest of a manifest, hex; a caller with another key gives another."""
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What an archive holds; `missing` are blobs the ledger names and the store did not have."""

    created_at: str
    migration: str
    model: Mapping[str, str]
    parts: Mapping[str, str]
    missing: tuple[str, ...]

    @property
    def blobs(self) -> int:
        """Number of blobs."""
        return sum(name.startswith("blobs/") for name in self.parts)


def write_backup(
    file: Path,
    *,
    dsn: str,
    blobs: Callable[[str], BlobStore],
    wanted: Callable[[], list[tuple[str, str]]],
    journal: str,
    model: Mapping[str, str],
    migration: str,
    now: datetime,
    seal: Seal,
) -> BackupSummary:
    """Write an archive; while it is written it has another name.

    Args:
        file: where to; must not exist.
        dsn: of the schema's owner.
        blobs: the blob store of a scope.
        wanted: scope and digest of every blob the ledger names; asked after the dump.
        journal: text of the erasure journal.
        model: name and identity of the embedding model.
        migration: newest migration of the schema.
        now: aware UTC.
        seal: with the installation's key.

    Raises:
        InputError: the file exists, or its folder does not.
        IntegrityError: a blob's bytes are not those of its digest.
        UnavailableError: pg_dump failed, a store is away, or a disk is full.
    """
    if file.exists():
        raise InputError(f"{file} exists.", next_step="Name another file, or delete it.")
    if not file.absolute().parent.is_dir():
        raise InputError(
            f"There is no folder {file.absolute().parent}.", next_step="Make it, or name another."
        )
    parts: dict[str, str] = {}
    missing: list[str] = []
    building = file.with_name(f".{file.name}.part")
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            _private(building) as out,
            tarfile.open(fileobj=out, mode="w") as archive,
        ):
            dump = Path(folder) / _DUMP
            programs.dump_schema(dsn, dump)
            parts[_DUMP] = _digest(dump)
            archive.add(dump, _DUMP)
            for scope, digest in wanted():
                name = f"blobs/{scope}/{digest}"
                try:
                    data = blobs(scope).get(digest)
                except NotFound:
                    missing.append(name)
                    continue
                parts[name] = digest
                _add(archive, name, data)
            parts[_JOURNAL] = hashlib.sha256(journal.encode()).hexdigest()
            _add(archive, _JOURNAL, journal.encode())
            made = BackupSummary(now.isoformat(), migration, model, parts, tuple(missing))
            manifest = _manifest(made)
            _add(archive, _MANIFEST, manifest)
            _add(archive, _SEAL, seal(manifest).encode())
        building.replace(file)
    except OSError as error:
        raise _no_room(error) from error
    finally:
        building.unlink(missing_ok=True)
    return made


@contextmanager
def _private(file: Path) -> Iterator[IO[bytes]]:
    """The file, empty and nobody else's from the start; on the disk when the block has ended."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        os.fchmod(out.fileno(), 0o600)
        yield out
        out.flush()
        os.fsync(out.fileno())


def check_backup(file: Path, seal: Seal | None) -> BackupSummary:
    """Read an archive whole and compare every part with its digest.

    Args:
        file: the archive.
        seal: with the installation's key; None: whoever made it is trusted.

    Raises:
        InputError: there is no such file, or it is no backup.
        PolicyError: it was made or changed by somebody without the key (`backup_not_ours`).
        IntegrityError: a part is missing, changed, or not in the manifest.
    """
    found: dict[str, str] = {}
    manifest, sealed = b"", ""
    try:
        for name, stream in _members(file):
            if name == _MANIFEST:
                manifest = stream.read()
            elif name == _SEAL:
                sealed = stream.read(_BLOCK).decode("ascii", "replace")
            else:
                found[name] = _digest_of(stream)
    except tarfile.TarError as error:
        raise IntegrityError(
            f"{file} ends too early: {error}.", next_step="Restore another backup."
        ) from error
    if manifest and seal is not None and not hmac.compare_digest(seal(manifest), sealed):
        raise PolicyError(
            f"{file.name} was not made with this installation's secret, or was changed since.",
            next_step="Put the secret that you kept apart into KB_HOME/secret (or KB_SECRET). Only "
            "for an archive that you yourself made and guarded: --unsigned.",
            code="backup_not_ours",
        )
    summary = _parsed(manifest, file)
    named = {**found, **summary.parts}
    wrong = sorted(name for name in named if found.get(name) != summary.parts.get(name))
    if wrong:
        raise IntegrityError(
            f"{len(wrong)} parts of {file.name} are damaged or missing: {', '.join(wrong[:5])}.",
            next_step="Nothing was changed; restore another backup.",
        )
    return summary


def restore_backup(
    file: Path,
    *,
    dsn: str,
    blobs: Callable[[str], BlobStore],
    force: bool,
    seal: Seal | None,
) -> tuple[BackupSummary, list[JournalEntry]]:
    """Put an archive in the place of an empty installation, or of any with `force`.

    Blobs come first: a crash leaves blobs that nobody needs, never rows without bytes. The database
    follows in one transaction.

    Returns:
        What was restored, and the erasures that the backup's own journal names; the caller repeats
        those and its own.

    Raises:
        ConflictError: the target holds documents.
        InputError, PolicyError, IntegrityError: as for `check_backup`; nothing was changed.
        UnavailableError: a disk is full, or the database could not be replaced; it is as it was.
    """
    summary = check_backup(file, seal)
    if not force and programs.holds_documents(dsn):
        raise ConflictError(
            "The knowledge base to restore into is not empty.",
            next_step="Name an empty one (KB_HOME, KB_DATABASE_URL), or replace it with --force.",
        )
    entries: list[JournalEntry] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder) / _DUMP
            for name, stream in _members(file):
                if name == _DUMP:
                    with dump.open("wb") as target:
                        while block := stream.read(_BLOCK):
                            target.write(block)
                elif name == _JOURNAL:
                    entries = list(read_entries(stream.read().decode(), name))
                elif name.startswith("blobs/"):
                    _, scope, digest = name.split("/")
                    if blobs(validate_scope(scope)).put(stream.read()) != digest:
                        raise IntegrityError(
                            f"{name} is damaged.", next_step="Restore another backup."
                        )
            programs.dump_version(dump)
            programs.load_schema(dsn, dump)
    except OSError as error:
        raise _no_room(error) from error
    return summary, entries


def _no_room(error: OSError) -> UnavailableError:
    return UnavailableError(
        f"The backup could not be written or unpacked: {error.strerror or error}.",
        next_step="Free space in its folder and for temporary files (TMPDIR), then try again.",
    )


def _members(file: Path) -> Iterator[tuple[str, Any]]:
    """Regular members, names as we write them only."""
    try:
        with tarfile.open(file, "r:") as archive:
            for member in archive:
                # A sparse member has any length it says, a link is another member's bytes.
                plain = member.isreg() and not member.issparse()
                stream = archive.extractfile(member) if plain else None
                if stream is None or member.name.startswith(("/", ".")) or ".." in member.name:
                    raise InputError(f"{file} holds {member.name!r}, which no backup does.")
                yield member.name, stream
    except FileNotFoundError as error:
        raise InputError(f"There is no file {file}.", next_step="Check the path.") from error
    except tarfile.TarError as error:
        raise IntegrityError(
            f"{file} cannot be read: {error}.", next_step="Restore another backup."
        ) from error


def _parsed(text: bytes, file: Path) -> BackupSummary:
    """The summary that a manifest states, each value of its kind."""
    try:
        value = json.loads(text or b"{}")
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise InputError(f"{file} is no backup of this format.", next_step="Name another file.")
        return BackupSummary(
            str(value["created_at"]),
            str(value["migration"]),
            {str(name): str(text) for name, text in value["model"].items()},
            {str(name): str(digest) for name, digest in value["parts"].items()},
            tuple(map(str, value["missing"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IntegrityError(
            f"The manifest of {file.name} is damaged.", next_step="Restore another backup."
        ) from error


def _manifest(made: BackupSummary) -> bytes:
    value = {
        "format": FORMAT,
        "created_at": made.created_at,
        "migration": made.migration,
        "model": dict(made.model),
        "missing": list(made.missing),
        "parts": dict(made.parts),
    }
    return json.dumps(value, indent=1, sort_keys=True).encode()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(data), 0o600
    archive.addfile(member, BytesIO(data))


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return _digest_of(stream)


def _digest_of(stream: Any) -> str:
    found = hashlib.sha256()
    while block := stream.read(_BLOCK):
        found.update(block)
    return found.hexdigest()
