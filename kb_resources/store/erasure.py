"""Erasures in the database: rows deleted, certificates kept, names known again by a keyed digest.

Belongs here: statements inside the caller's transaction. What does not: blobs, files, Dagster
(`stages.erase`), the journal outside the database (`erasure_journal`). What a certificate keeps of
a document is HMAC-SHA256 of its name, see https://www.rfc-editor.org/rfc/rfc2104.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from kb_resources.errors import NotFound
from kb_resources.model import DocumentKey
from kb_resources.store import locks
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.erasure_journal import JournalEntry
from kb_resources.store.sql import sql

Counts = dict[str, dict[str, int]]
"""Store to kind to number: `{"database": {"passage": 12}, "blobs": {"deleted": 1}}`."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What an erasure deleted.

    Attributes:
        erasure_id: random.
        scope: scope name.
        actor: who asked.
        reason: why.
        counts: store to kind to number deleted or rewritten.
        remains: sentences about what is left outside of this installation's reach.
        started_at: aware.
        finished_at: aware; None while something is still to be deleted outside the database.
        readmitted_at: when somebody let the document in again.
        replays: times it was repeated after a backup was restored.
    """

    erasure_id: str
    scope: str
    actor: str
    reason: str
    counts: Counts
    remains: list[str]
    started_at: datetime
    finished_at: datetime | None
    readmitted_at: datetime | None
    replays: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An erasure whose rows are gone and whose `work` outside the database is not."""

    erasure_id: str
    scope: str
    scope_id: int
    id_digest: str
    work: dict[str, Any]
    started_at: datetime


@dataclass(frozen=True, slots=True)
class VersionBytes:
    """Bytes of a version; `shared` when another document of the scope holds them too."""

    digest: str
    size_bytes: int
    name: str
    shared: bool


def salt(conn: Conn) -> bytes:
    """This installation's key for names, made when first asked for; 32 bytes."""
    conn.execute(sql("make_salt"), {"salt": secrets.token_bytes(32)})
    row = conn.execute(sql("installation_salt")).fetchone()
    if row is None:
        raise NotFound("The installation has no key for names.")
    return bytes(row[0])


def adopt_salt(conn: Conn, key: bytes) -> None:
    """Take a key over where there is none yet."""
    conn.execute(sql("make_salt"), {"salt": key})


def id_digest(key: bytes, document: DocumentKey) -> str:
    """Keyed digest of a document's name, lowercase hex."""
    return hmac.new(key, str(document).encode(), hashlib.sha256).hexdigest()


def version_bytes(conn: Conn, row: DocumentRow) -> list[VersionBytes]:
    """The bytes of all versions of a document."""
    with conn.cursor(row_factory=class_row(VersionBytes)) as cursor:
        return cursor.execute(sql("version_bytes"), {"document_key": row.document_key}).fetchall()


def jobs_of(conn: Conn, document: DocumentKey) -> list[str]:
    """Ids of the jobs that people gave for a document, whose uploads may still lie in the spool."""
    given = {"scope": document.scope, "document_id": document.document_id}
    return [job_id for (job_id,) in conn.execute(sql("jobs_of_document"), given).fetchall()]


def bytes_used(conn: Conn, scope_id: int, digest: str) -> bool:
    """Whether a version of the scope needs these bytes, with the lock on them held from now on."""
    locks.lock_bytes(conn, [(scope_id, digest)])
    row = conn.execute(sql("bytes_used"), {"scope_id": scope_id, "digest": digest}).fetchone()
    return bool(row and row[0])


def erase_rows(conn: Conn, document_key: int, *, alias: str, reason: str) -> dict[str, int]:
    """Delete a document's rows; its empty row stays under the alias. Numbers by table."""
    row = conn.execute(
        sql("erase_document"), {"document_key": document_key, "alias": alias, "reason": reason}
    ).fetchone()
    return dict(row[0]) if row else {}


def begin(
    conn: Conn,
    erasure_id: str,
    row: DocumentRow,
    *,
    digest: str,
    actor: str,
    reason: str,
    work: Mapping[str, Any],
    counts: Counts,
) -> None:
    """Store what was begun, in the transaction that deletes the rows."""
    conn.execute(
        sql("begin_erasure"),
        {
            "erasure_id": erasure_id,
            "scope_id": row.scope_id,
            "id_digest": digest,
            "actor": actor,
            "reason": reason,
            "work": Jsonb(dict(work)),
            "counts": Jsonb(counts),
        },
    )


def progress(conn: Conn, erasure_id: str, counts: Counts) -> None:
    """Add what another store deleted."""
    conn.execute(sql("erasure_progress"), {"erasure_id": erasure_id, "counts": Jsonb(counts)})


def finish(conn: Conn, erasure_id: str, counts: Counts, remains: Sequence[str]) -> None:
    """Everything is deleted: the list of work, which still named things, goes too."""
    conn.execute(
        sql("finish_erasure"),
        {"erasure_id": erasure_id, "counts": Jsonb(counts), "remains": Jsonb(list(remains))},
    )


def certificates(
    conn: Conn, *, scope: str | None = None, erasure_id: str | None = None, limit: int = 1000
) -> list[Certificate]:
    """Certificates, newest first."""
    with conn.cursor(row_factory=class_row(Certificate)) as cursor:
        return cursor.execute(
            sql("erasures"), {"scope": scope, "erasure_id": erasure_id, "limit": limit}
        ).fetchall()


def certificate(conn: Conn, erasure_id: str) -> Certificate:
    """One certificate or NotFound."""
    found = certificates(conn, erasure_id=erasure_id, limit=1)
    if not found:
        raise NotFound(
            f"There is no erasure {erasure_id}.", next_step="Look with kb erasures --scope NAME."
        )
    return found[0]


def unfinished(conn: Conn) -> list[Unfinished]:
    """Erasures that a crash left between the database and the other stores, oldest first."""
    with conn.cursor(row_factory=class_row(Unfinished)) as cursor:
        return cursor.execute(sql("unfinished_erasures")).fetchall()


def keep_out(conn: Conn, scope_id: int, document: DocumentKey) -> bool:
    """Keep a source out that comes back by itself after its document was erased.

    Call it in the transaction that registered the document. Returns whether it stays out.
    """
    row = conn.execute(sql("scope_has_erasures"), {"scope_id": scope_id}).fetchone()
    if not row or not row[0]:
        return False
    digest = id_digest(salt(conn), document)
    given = {"scope_id": scope_id, "id_digest": digest}
    before = conn.execute(sql("erased_before"), given).fetchone()
    if before is None:
        return False
    reason = (
        f"It was erased on {before[1]:%Y-%m-%d} (certificate {before[0]}) and its source is still "
        "there. Delete the source, or let it in again with kb documents restore."
    )
    conn.execute(
        sql("keep_out"),
        {"scope_id": scope_id, "document_id": document.document_id, "reason": reason},
    )
    return True


def readmit(conn: Conn, scope_id: int, document: DocumentKey) -> None:
    """Let a document that was erased be ingested again."""
    digest = id_digest(salt(conn), document)
    conn.execute(sql("readmit"), {"scope_id": scope_id, "id_digest": digest})


def held_only_by(conn: Conn, scope: str, audience: str) -> list[DocumentKey]:
    """Documents that nobody but holders of the audience can read."""
    rows = conn.execute(sql("held_only_by"), {"scope": scope, "audience": audience}).fetchall()
    return [DocumentKey(scope, document_id) for (document_id,) in rows]


def mentions(conn: Conn, name: str, scope_id: int | None) -> dict[str, int]:
    """Rows that name it by `table.column`, but for documents' own texts."""
    row = conn.execute(sql("mentions"), {"name": name, "scope_id": scope_id}).fetchone()
    return dict(row[0]) if row else {}


def forget_actor(conn: Conn, actor: str, alias: str) -> dict[str, int]:
    """Write the alias wherever the actor's name stands; rows by `table.column`."""
    row = conn.execute(sql("forget_actor"), {"actor": actor, "alias": alias}).fetchone()
    return dict(row[0]) if row else {}


def known_before(conn: Conn, scope: str, before: datetime) -> list[tuple[int, DocumentKey]]:
    """Documents of a scope that were known before an instant."""
    rows = conn.execute(sql("documents_before"), {"scope": scope, "before": before}).fetchall()
    return [(key, DocumentKey(scope, document_id)) for key, document_id in rows]


def adopt(
    conn: Conn,
    erasure_id: str,
    *,
    scope: str,
    digest: str,
    actor: str,
    reason: str,
    started_at: datetime,
) -> None:
    """Enter an erasure that the restored database does not know."""
    conn.execute(
        sql("adopt_erasure"),
        {
            "erasure_id": erasure_id,
            "scope": scope,
            "id_digest": digest,
            "actor": actor,
            "reason": reason,
            "started_at": started_at,
        },
    )


def note_replay(conn: Conn, erasure_id: str, at: datetime, counts: Counts) -> None:
    """Say in the certificate that the erasure was repeated after a restore."""
    replay = Jsonb([{"at": at.isoformat(), "counts": counts}])
    conn.execute(sql("note_replay"), {"erasure_id": erasure_id, "replay": replay})


def untold_consumers(conn: Conn, document: DocumentKey) -> int:
    """Consumers of the outbox that still have to be told that the document is gone."""
    row = conn.execute(
        sql("untold_consumers"), {"scope": document.scope, "document_id": document.document_id}
    ).fetchone()
    return int(row[0]) if row else 0


def wanted_blobs(conn: Conn) -> list[tuple[str, str]]:
    """Scope and digest of all bytes that versions need."""
    return [(scope, digest) for scope, digest in conn.execute(sql("wanted_blobs")).fetchall()]


def for_journal(conn: Conn) -> list[JournalEntry]:
    """The database's own erasures as entries of a journal."""
    with conn.cursor(row_factory=class_row(JournalEntry)) as cursor:
        return cursor.execute(sql("erasures_for_journal")).fetchall()
