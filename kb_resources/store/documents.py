"""Scopes and documents of the ledger, one at a time.

Belongs here: reading and writing those rows inside the caller's transaction. What does not:
lists of documents (`selections`), locks, versions and their texts (`versions`), retrieval rows
(`passages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from kb_resources.errors import InputError, NotFound, PolicyError
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


@dataclass(frozen=True, slots=True)
class Registration:
    """What is said about a document that is to be known.

    Attributes:
        scope_id: of the document.
        document_id: in its scope.
        source: where its bytes are.
        audiences: who may read it; empty: everyone in the scope.
        trusted_by: who vouches for it.
        language_hint: stated language.
        valid_from: aware time from which it holds.
        supersedes: ids of documents that it ends.
        readers: audiences that the caller holds; None: the caller reads everything.
    """

    scope_id: int
    document_id: str
    source: Source
    audiences: Sequence[str] = ()
    trusted_by: str | None = None
    language_hint: str | None = None
    valid_from: datetime | None = None
    supersedes: Sequence[str] = ()
    readers: Sequence[str] | None = None

    def values(self) -> dict[str, Any]:
        """Parameters of the statement."""
        return {
            "scope_id": self.scope_id,
            "document_id": self.document_id,
            "source_kind": self.source.kind.value,
            "source_uri": self.source.uri,
            "origin": self.source.origin,
            "audiences": sorted(set(self.audiences)),
            "trusted_by": self.trusted_by,
            "language_hint": self.language_hint,
            "valid_from": self.valid_from,
            "supersedes": sorted(set(self.supersedes)),
            "reads_all": self.readers is None,
            "readers": list(self.readers or ()),
        }


def register_all(conn: Conn, asked: Sequence[Registration]) -> None:
    """`register` for several documents, of a caller who reads everything."""
    with conn.cursor() as cursor:
        cursor.executemany(sql("register_document"), [each.values() for each in asked])


def register(conn: Conn, asked: Registration) -> None:
    """Make the document known, or take over what the caller says about it now.

    Args:
        conn: inside a transaction.
        asked: the document, and who asks.

    Raises:
        PolicyError: the id is that of a document the caller may not read (`document_id_refused`).
    """
    given = asked.values()
    if conn.execute(sql("register_document"), given).rowcount or asked.readers is None:
        return
    # Nothing to change, or not for this caller.
    found = conn.execute(sql("document_hidden_from"), given).fetchone()
    if found and found[0]:
        raise id_refused(asked.document_id)


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
        raise no_document(key)
    return rows[0]


def no_document(key: DocumentKey) -> NotFound:
    """The error for a document that is not there, or not any more."""
    return NotFound(f"There is no document {key}.", next_step="Look with kb documents list.")


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


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of a document's log; `document_key` names another document of the row's scope."""

    row: DocumentRow
    event: str
    version: int | None
    details: dict[str, Any]
    document_key: int | None = None


def append_events(conn: Conn, events: Sequence[Event], *, actor: str) -> None:
    """Add entries to the hash chains of their documents, in order."""
    if events:
        conn.execute(
            sql("append_events"),
            {
                "scope_ids": [each.row.scope_id for each in events],
                "document_keys": [each.document_key or each.row.document_key for each in events],
                "versions": [each.version for each in events],
                "events": [each.event for each in events],
                "actor": actor,
                "details": [Jsonb(each.details) for each in events],
            },
        )


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
    append_events(conn, [Event(row, event, version, details, document_key)], actor=actor)


def reopen(conn: Conn, row: DocumentRow) -> None:
    """Back to pending: a stage did work, so that the state reached before no longer stands."""
    reopen_many(conn, [row.document_key])


def reopen_many(conn: Conn, document_keys: Sequence[int]) -> None:
    """`reopen` for several documents."""
    if document_keys:
        conn.execute(sql("reopen_documents"), {"document_keys": list(document_keys)})


def wake_duplicates(conn: Conn, row: DocumentRow) -> list[str]:
    """Duplicates of this document go back to pending; returns their ids."""
    rows = conn.execute(sql("wake_duplicates"), {"document_key": row.document_key}).fetchall()
    return [document_id for (document_id,) in rows]


def touch_settled(conn: Conn, row: DocumentRow, settled: str) -> None:
    """Remember what the standing state was reached for, without changing it."""
    conn.execute(sql("touch_settled"), {"document_key": row.document_key, "settled": settled})
