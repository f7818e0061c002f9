"""Scopes and documents of the ledger, one at a time.

Belongs here: reading and writing those rows inside the caller's transaction. What does not:
lists of documents (`selections`), versions and their texts (`versions`), retrieval rows
(`passages`).
Advisory locks follow postgresql.org/docs, "13.3.5. Advisory Locks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.model import DocumentKey, DocumentState, Source
from kb_resources.store.sql import rows, sql

Conn = Connection[Any]


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope; settings are the JSON object of `stages.scope_settings`."""

    scope_id: int
    name: str
    settings: dict[str, Any]
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document with its newest version beside it (None before acquire made one).

    `converted_by` names the model that wrote its body anew.
    `cleared` is the gate's answer for that version, `current` whether it is valid now. The models
    are those of the scope's generations, None before it has vectors, or where none lies beside.
    """

    scope_id: int
    scope: str
    settings: dict[str, Any]
    document_key: int
    document_id: str
    source_kind: str
    source_uri: str
    origin: str
    audiences: list[str]
    trusted_by: str | None
    language_hint: str | None
    requested_valid_from: datetime | None
    supersedes: list[str]
    state: str
    reason: str
    attempts: int
    settled_fingerprint: str | None
    latest_version: int | None
    version_key: int | None
    digest: str | None
    body_digest: str | None
    converted_by: str | None
    media_type: str | None
    size_bytes: int | None
    name: str | None
    title: str | None
    language: str | None
    verdict: str | None
    version_state: str | None
    cleared: bool | None
    current: bool
    live_model: str | None
    beside_model: str | None
    beside_is: str | None

    @property
    def key(self) -> DocumentKey:
        """The partition."""
        return DocumentKey(self.scope, self.document_id)


def ensure_scope(conn: Conn, name: str, settings: dict[str, Any]) -> ScopeRow:
    """The scope, made with `settings` where it is new; InputError where it is closed."""
    with conn.cursor(row_factory=class_row(ScopeRow)) as cursor:
        row = cursor.execute(
            sql("ensure_scope"), {"name": name, "settings": Jsonb(settings)}
        ).fetchone()
    # Lost the race against another maker: its row is visible to a new statement only.
    row = row or get_scope(conn, name)
    if row.closed_at is not None:
        raise InputError(f"The scope {name!r} is closed.", next_step="Name another, or reopen it.")
    return row


def get_scope(conn: Conn, name: str) -> ScopeRow:
    """The scope or NotFound."""
    with conn.cursor(row_factory=class_row(ScopeRow)) as cursor:
        row = cursor.execute(sql("get_scope"), {"name": name}).fetchone()
    if row is None:
        raise no_scope(name)
    return row


def no_scope(name: str) -> NotFound:
    """The error for a scope that is not there, or not for the one who asks."""
    return NotFound(
        f"There is no scope {name!r}.", next_step="Ingest something into it, or check the name."
    )


def list_scopes(conn: Conn) -> list[dict[str, Any]]:
    """All scopes the connection may see, by name."""
    return rows(conn, "list_scopes")


def register(
    conn: Conn,
    scope_id: int,
    document_id: str,
    source: Source,
    *,
    audiences: Sequence[str] = (),
    trusted_by: str | None = None,
    language_hint: str | None = None,
    valid_from: datetime | None = None,
    supersedes: Sequence[str] = (),
    readers: Sequence[str] | None = None,
) -> None:
    """Make the document known, or take over what the caller says about it now.

    Args:
        conn: inside a transaction.
        scope_id: of the document.
        document_id: in its scope.
        source: where its bytes are.
        audiences: who may read it; empty: everyone in the scope.
        trusted_by: who vouches for it.
        language_hint: stated language.
        valid_from: aware time from which it holds.
        supersedes: ids of documents that it ends.
        readers: audiences that the caller holds; None: the caller reads everything.

    Raises:
        PolicyError: the id is that of a document the caller may not read (`document_id_refused`).
    """
    given = {
        "scope_id": scope_id,
        "document_id": document_id,
        "source_kind": source.kind.value,
        "source_uri": source.uri,
        "origin": source.origin,
        "audiences": sorted(set(audiences)),
        "trusted_by": trusted_by,
        "language_hint": language_hint,
        "valid_from": valid_from,
        "supersedes": sorted(set(supersedes)),
        "reads_all": readers is None,
        "readers": list(readers or ()),
    }
    if conn.execute(sql("register_document"), given).rowcount or readers is None:
        return
    # Nothing to change, or not for this caller.
    found = conn.execute(sql("document_hidden_from"), given).fetchone()
    if found and found[0]:
        raise id_refused(document_id)


def id_refused(document_id: str) -> PolicyError:
    """What a caller hears about an id that is not for them, whatever is behind it."""
    return PolicyError(
        f"The id {document_id!r} cannot be used.",
        next_step="Leave the id out, or choose another.",
        code="document_id_refused",
    )


def load(conn: Conn, keys: Sequence[DocumentKey]) -> list[DocumentRow]:
    """Rows of the known ones among `keys`, in that order."""
    with conn.cursor(row_factory=class_row(DocumentRow)) as cursor:
        return cursor.execute(
            sql("load_documents"),
            {"scopes": [k.scope for k in keys], "documents": [k.document_id for k in keys]},
        ).fetchall()


def load_one(conn: Conn, key: DocumentKey) -> DocumentRow:
    """One row or NotFound."""
    rows = load(conn, [key])
    if not rows:
        raise NotFound(f"There is no document {key}.", next_step="Look with kb documents list.")
    return rows[0]


def lock(conn: Conn, document_key: int) -> None:
    """Hold the document until the transaction ends; other writers of it wait."""
    conn.execute(sql("lock_document"), {"document_key": document_key})


def load_locked(conn: Conn, key: DocumentKey) -> DocumentRow:
    """One row as it stands under its lock, or NotFound."""
    lock(conn, load_one(conn, key).document_key)
    return load_one(conn, key)


def hold(conn: Conn, row: DocumentRow) -> None:
    """Lock the document for a row read earlier.

    Raises:
        ConflictError: the document has newer bytes meanwhile; the row is out of date.
    """
    lock(conn, row.document_key)
    found = conn.execute(sql("latest_version"), {"document_key": row.document_key}).fetchone()
    if found is None or found[0] != row.latest_version:
        raise ConflictError(
            f"{row.key} changed while a stage worked on it.",
            next_step="Nothing was written; the run for the newer bytes goes on.",
        )


def set_state(
    conn: Conn,
    row: DocumentRow,
    state: DocumentState,
    reason: str = "",
    *,
    settled: str | None = None,
    duplicate_of: int | None = None,
    attempts: int = 0,
) -> None:
    """Write the document's state; `settled` is the fingerprint it was reached for."""
    conn.execute(
        sql("set_document_state"),
        {
            "document_key": row.document_key,
            "state": state.value,
            "reason": reason[:2000],
            "settled": settled,
            "duplicate_of": duplicate_of,
            "attempts": attempts,
        },
    )


def same_bytes(conn: Conn, row: DocumentRow, digest: str) -> tuple[int, str] | None:
    """Key and id of the scope's document that these bytes are published under for these readers.

    Or about to be; see the statement. Takes the lock on the bytes, so that two documents cannot
    both find nobody.
    """
    lock_bytes(conn, row, digest)
    found = conn.execute(
        sql("find_same_bytes"),
        {
            "scope_id": row.scope_id,
            "digest": digest,
            "document_key": row.document_key,
            "audiences": row.audiences,
        },
    ).fetchone()
    return (found[0], found[1]) if found else None


def lock_bytes(conn: Conn, row: DocumentRow, digest: str) -> None:
    """Hold these bytes in the row's scope until the transaction ends; who deletes them waits."""
    conn.execute(sql("lock_bytes"), {"digest": digest, "scope_id": row.scope_id})


def append_lifecycle(
    conn: Conn,
    row: DocumentRow,
    event: str,
    *,
    actor: str,
    version: int | None,
    document_key: int | None = None,
    **details: Any,
) -> None:
    """Add one event to the hash chain of the row's document, or of `document_key` in its scope."""
    conn.execute(
        sql("append_lifecycle"),
        {
            "scope_id": row.scope_id,
            "document_key": document_key or row.document_key,
            "version": version,
            "event": event,
            "actor": actor,
            "details": Jsonb(details),
        },
    )


def reopen(conn: Conn, row: DocumentRow) -> None:
    """Back to pending: a stage did work, so that the state reached before no longer stands."""
    conn.execute(sql("reopen_document"), {"document_key": row.document_key})


def wake_duplicates(conn: Conn, row: DocumentRow) -> list[str]:
    """Duplicates of this document go back to pending; returns their ids."""
    rows = conn.execute(sql("wake_duplicates"), {"document_key": row.document_key}).fetchall()
    return [document_id for (document_id,) in rows]


def touch_settled(conn: Conn, row: DocumentRow, settled: str) -> None:
    """Remember what the standing state was reached for, without changing it."""
    conn.execute(sql("touch_settled"), {"document_key": row.document_key, "settled": settled})
