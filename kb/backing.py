"""Backup and restore of one installation: its database, blobs, journal and model.

Belongs here: which stores are meant. What does not: the archive (`stages.backup`).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from json import dumps
from pathlib import Path

import psycopg

from kb.access.secret import Secret, ensure_secret, load_secret
from kb.erasing import open_eraser
from kb.ingesting import local_actor
from kb_resources import embed
from kb_resources.acquire import BlobStore, open_blob_store
from kb_resources.compose import migrate_database, open_line, owner_dsn
from kb_resources.errors import PolicyError
from kb_resources.settings import Settings
from kb_resources.stages import backup
from kb_resources.stages.backup import BackupSummary
from kb_resources.store import erasure
from kb_resources.store.erasure_journal import (
    FILE_NAME,
    ErasureJournal,
    JournalEntry,
    merged,
)
from kb_resources.store.migration_files import load_migrations


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did; `erased_again` are documents that had been erased after the backup."""

    summary: BackupSummary
    erased_again: int
    model_differs: bool


def write(settings: Settings, file: Path) -> BackupSummary:
    """Write a backup; see `stages.backup.write_backup`."""
    migrate_database(settings)
    dsn = owner_dsn(settings)

    def wanted() -> list[tuple[str, str]]:
        with psycopg.connect(dsn) as conn:
            return erasure.wanted_blobs(conn)

    with psycopg.connect(dsn) as conn:
        entries = list(merged(_journal(settings).entries(), erasure.for_journal(conn)))
    return backup.write_backup(
        file,
        dsn=dsn,
        blobs=_blobs(settings),
        wanted=wanted,
        journal=_text(entries),
        model=_model(settings),
        migration=load_migrations()[-1].label,
        now=datetime.now(UTC),
        seal=_seal(ensure_secret(settings)[0]),
    )


def restore(
    settings: Settings,
    file: Path,
    *,
    force: bool,
    journal: Path | None,
    unsigned: bool = False,
) -> Restored:
    """Restore a backup and repeat every erasure that is known to anybody.

    Args:
        settings: the installation to restore into.
        file: the archive.
        force: replace what is there.
        journal: a further erasure journal, of another machine.
        unsigned: trust whoever made the archive; what it holds runs as the schema's owner.

    Raises:
        PolicyError: it was not made with this installation's secret, or there is no secret here.
    """
    secret = None if unsigned else load_secret(settings)
    if secret is None and not unsigned:
        raise PolicyError(
            "This installation has no secret, so nobody can tell who made the archive.",
            next_step="Put the secret that you kept apart into KB_HOME/secret (or KB_SECRET). Only "
            "for an archive that you yourself made and guarded: --unsigned.",
            code="backup_not_ours",
        )
    migrate_database(settings)
    dsn = owner_dsn(settings)
    with psycopg.connect(dsn) as conn:
        known = erasure.for_journal(conn)
    summary, of_backup = backup.restore_backup(
        file,
        dsn=dsn,
        blobs=_blobs(settings),
        force=force,
        seal=_seal(secret) if secret else None,
    )
    migrate_database(settings)
    here = _journal(settings)
    written = here.entries()
    others = ErasureJournal(journal).entries() if journal else []
    every = list(merged(of_backup, known, others, written))
    have = {entry.erasure_id for entry in written}
    for entry in every:
        if entry.erasure_id not in have:
            here.append(entry)
    with open_line(settings, actor=local_actor()) as line:
        eraser = open_eraser(settings, line)
        eraser.resume()
        again = eraser.replay(every)
    return Restored(summary, len(again), dict(summary.model) != _model(settings))


def _seal(secret: Secret) -> backup.Seal:
    """Keyed digest by a key that the secret gives for backups alone."""
    key = secret.key("backup")
    return lambda data: hmac.digest(key, data, "sha256").hex()


def _journal(settings: Settings) -> ErasureJournal:
    return ErasureJournal(settings.home / FILE_NAME)


def _text(entries: Sequence[JournalEntry]) -> str:
    return "".join(dumps(asdict(entry) | {"at": entry.at.isoformat()}) + "\n" for entry in entries)


def _blobs(settings: Settings) -> Callable[[str], BlobStore]:
    def of_scope(scope: str) -> BlobStore:
        return open_blob_store(f"{settings.blob_location.rstrip('/')}/{scope}")

    return of_scope


def _model(settings: Settings) -> dict[str, str]:
    """Name and identity of the configured model; read from its manifest, nothing is loaded."""
    identity = embed.prepare(settings.models_path, settings.model).identity
    return {"name": settings.model, "identity": identity.model_id}
