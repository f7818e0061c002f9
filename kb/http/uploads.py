"""From an upload to a queued job.

Belongs here: identity of an uploaded document, the spool, the job's row. What does not: reading the
form (`multipart`), the work (`worker`). Two people's `report.pdf` are two documents: the id is
derived from the name together with who may read it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.access.identity import Identity
from kb.http.multipart import Upload
from kb_resources.errors import ConflictError, InputError, NotFound, UnavailableError
from kb_resources.model import derive_document_id, validate_document_id
from kb_resources.settings import Settings
from kb_resources.stages.erase_files import SPOOL
from kb_resources.store import documents as ledger
from kb_resources.store import jobs, listing
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database
from kb_resources.supersede import parse_instant

_ZONED = re.compile(r"(?:Z|[+-]\d{2}:?\d{2}|\])$")
_receiving: dict[Path, int | None] = {}
"""Spools that this process is filling, each with the descriptor that locks it."""
MAX_QUEUED = 1000
"""Jobs of one scope that may wait; more are refused until the worker has caught up."""
FIELDS = frozenset({"scope", "audiences", "document_id", "language", "valid_from"})


@dataclass(frozen=True, slots=True)
class Wish:
    """What the form says about the file.

    Attributes:
        scope: one the identity may use.
        audiences: who may read it; empty: everyone in the scope.
        document_id: given by the caller, or None.
        language: stated, or None.
        valid_from: aware ISO 8601 time, or None.
    """

    scope: str
    audiences: tuple[str, ...]
    document_id: str | None
    language: str | None
    valid_from: str | None


def spool_folder(settings: Settings) -> Path:
    """Where uploads wait for the worker; made when first used, for this account alone."""
    folder = settings.home / SPOOL
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def new_spool(settings: Settings) -> tuple[str, Path]:
    """A new job id and its folder.

    Raises:
        UnavailableError: the folder cannot be made (`spool_away`).
    """
    job_id = secrets.token_hex(12)
    try:
        folder = spool_folder(settings) / job_id
        folder.mkdir(mode=0o700)
        _receiving[folder] = _locked(folder)
    except OSError as error:
        raise UnavailableError(
            f"Uploads cannot be kept in {settings.home / SPOOL}: {error.strerror or error}.",
            next_step="Make room there, or give this account write access to KB_HOME/uploads.",
            code="spool_away",
        ) from error
    return job_id, folder


def received(folder: Path) -> None:
    """The job of a spool is written, or the spool is gone: whoever looks may clean up."""
    descriptor = _receiving.pop(folder, None)
    if descriptor is not None:
        os.close(descriptor)


def drop_spool(folder: Path) -> None:
    """Delete a job's folder, if it is still there."""
    shutil.rmtree(folder, ignore_errors=True)


def drop_orphans(database: Database, settings: Settings) -> int:
    """Delete spools that no waiting job will take up: of a server that was killed while one came.

    What another server of the same folder receives now is locked by it and stays.

    Returns:
        How many were deleted.
    """
    held = {}
    try:
        for folder in spool_folder(settings).iterdir():
            if folder.is_dir() and (descriptor := _locked(folder)) is not None:
                held[folder] = descriptor
        # The rows are read once nobody can still be writing them.
        with database.transaction("app") as conn:
            scopes = sorted(jobs.scopes(conn))
        with database.transaction("app", scopes) as conn:
            waiting = jobs.waiting_ids(conn, [folder.name for folder in held])
        orphans = [folder for folder in held if folder.name not in waiting]
        for folder in orphans:
            drop_spool(folder)
        return len(orphans)
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder until it is closed, also by a kill; None: others do."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def wish_of(identity: Identity, fields: Mapping[str, tuple[str, ...]]) -> Wish:
    """What the form's fields ask for.

    A missing `audiences` means the uploader alone; an empty one everyone in the scope.

    Raises:
        InputError: a field does not fit, or is not known.
        PolicyError: an audience belongs to somebody else.
        NotFound: no such scope for this identity.
    """
    if unknown := sorted(set(fields) - FIELDS):
        raise InputError(
            f"The form has fields that are not known: {', '.join(unknown)[:200]}.",
            next_step=f"Use file and {', '.join(sorted(FIELDS))}.",
        )
    scope = identity.use_scope(_one(fields, "scope"))
    given = fields.get("audiences")
    names = None if given is None else [n for part in given for n in part.split(",") if n.strip()]
    document_id = _one(fields, "document_id")
    language = _one(fields, "language")
    if language is not None and not (len(language) in (2, 3) and language.isalpha()):
        raise InputError(f"{language!r} is no ISO 639 code.", next_step="Write en, de, sr, ….")
    return Wish(
        scope=scope,
        audiences=identity.publish_to(None if names is None else [n.strip() for n in names]),
        document_id=None if document_id is None else validate_document_id(document_id),
        language=language,
        valid_from=_instant(_one(fields, "valid_from")),
    )


def queue_upload(
    database: Database, identity: Identity, wish: Wish, upload: Upload, job_id: str
) -> jobs.JobRow:
    """Write the job of an upload whose bytes lie in the spool.

    Raises:
        PolicyError: the id names a document, there or waiting, that this identity may not read.
        ConflictError: too many jobs wait (`backlog`).
    """
    with database.transaction("app", wish.scope) as conn:
        document_id = _document_id(conn, identity, wish, upload.name)
        _check_backlog(conn)
        request = {
            "name": upload.name,
            "size_bytes": upload.size_bytes,
            "audiences": list(wish.audiences),
            "language": wish.language,
            "valid_from": wish.valid_from,
            "readers": identity.visible_audiences(),
        }
        jobs.add(
            conn,
            job_id,
            scope=wish.scope,
            document_id=document_id,
            kind="ingest",
            actor=identity.actor,
            request=request,
        )
        return jobs.get(conn, job_id)


def queue_resume(database: Database, scope: str, document_id: str, *, actor: str) -> jobs.JobRow:
    """Write a job that takes a document on from where it stands."""
    job_id = secrets.token_hex(12)
    with database.transaction("app", scope) as conn:
        jobs.add(
            conn,
            job_id,
            scope=scope,
            document_id=document_id,
            kind="resume",
            actor=actor,
            request={},
        )
        return jobs.get(conn, job_id)


def job_json(job: jobs.JobRow) -> dict[str, Any]:
    """A job for the API; until it ends its document is pending."""
    waiting = [{"document_id": job.document_id, "state": "pending", "reason": "", "version": None}]
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "scope": job.scope,
        "state": job.state,
        "actor": job.actor,
        "name": job.request.get("name"),
        "reason": job.reason,
        "documents": job.documents or waiting,
        "created_at": job.created_at.isoformat(),
        "started_at": job.started_at.isoformat() if job.started_at else None,
        "finished_at": job.finished_at.isoformat() if job.finished_at else None,
    }


def _document_id(conn: Conn, identity: Identity, wish: Wish, name: str) -> str:
    try:
        opaque = bool(ledger.get_scope(conn, wish.scope).settings.get("opaque_ids"))
    except NotFound:  # the scope is made with its first document
        opaque = False
    readers = ",".join(wish.audiences)
    derived = derive_document_id(f"{readers}/{name}" if readers else name, opaque=opaque)
    document_id = wish.document_id or derived
    known = listing.documents(conn, wish.scope, audiences=None, document_id=document_id, limit=1)
    held = identity.visible_audiences()
    if held is None:
        return document_id
    for_others = known[0]["audiences"] if known else []
    if (for_others and not set(held) & set(for_others)) or jobs.id_awaited_by_others(
        conn, wish.scope, document_id, held
    ):
        raise ledger.id_refused(document_id)
    return document_id


def _check_backlog(conn: Conn) -> None:
    if jobs.count_waiting(conn) >= MAX_QUEUED:
        raise ConflictError(
            f"{MAX_QUEUED} jobs wait already in this scope.",
            next_step="Try again when some are done.",
            code="backlog",
        )


def _one(fields: Mapping[str, tuple[str, ...]], name: str) -> str | None:
    values = [value.strip() for value in fields.get(name, ()) if value.strip()]
    if len(values) > 1:
        raise InputError(f"The field {name} was sent twice.", next_step="Send it once.")
    return values[0] if values else None


def _instant(text: str | None) -> str | None:
    if text is None:
        return None
    if not _ZONED.search(text):
        raise InputError(
            f"{text[:40]!r} has no time zone.",
            next_step="Write 2026-01-31T12:00+01:00 or 2026-01-31[Europe/Berlin].",
        )
    return parse_instant(text, end_of_day=False).isoformat()
