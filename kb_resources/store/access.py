"""Keys, members, sessions and the log of their changes, in the caller's transaction.

Belongs here: rows of who may come in, for the reading role. What does not: secrets in the clear and
how they are hashed (`kb.access`), what a role allows.
See https://cheatsheetseries.owasp.org/cheatsheets/Session_Management_Cheat_Sheet.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from kb_resources.errors import NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One API key; `scopes` None opens all. Hashes are 32 bytes."""

    key_id: str
    name: str
    secret_hash: bytes
    previous_hash: bytes | None
    previous_until: datetime | None
    role: str
    scopes: list[str] | None
    audiences: list[str]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One person of the identity provider; `scopes` None opens all."""

    subject: str
    name: str
    role: str
    scopes: list[str] | None
    audiences: list[str]
    created_by: str
    created_at: datetime
    removed_at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session that has not expired; the payload is sealed."""

    kind: str
    subject: str
    payload: bytes
    expires_at: datetime


def add_key(conn: Conn, **values: Any) -> None:
    """Store a new key; names as in `KeyRow`."""
    conn.execute(sql("add_key"), values)


def get_key(conn: Conn, key_id: str) -> KeyRow | None:
    """One key, revoked and expired ones too."""
    with conn.cursor(row_factory=class_row(KeyRow)) as cursor:
        return cursor.execute(sql("get_key"), {"key_id": key_id}).fetchone()


def list_keys(
    conn: Conn, *, scopes: Sequence[str] | None, limit: int | None, before: datetime | None = None
) -> list[KeyRow]:
    """Keys that open nothing outside `scopes` (None: all), newest first; no limit with None."""
    with conn.cursor(row_factory=class_row(KeyRow)) as cursor:
        return cursor.execute(
            sql("list_keys"),
            {"scopes": None if scopes is None else list(scopes), "limit": limit, "before": before},
        ).fetchall()


def rotate_key(
    conn: Conn, key_id: str, *, secret_hash: bytes, previous_until: datetime | None
) -> None:
    """Give a key another secret; NotFound where there is none or it is revoked."""
    done = conn.execute(
        sql("rotate_key"),
        {"key_id": key_id, "secret_hash": secret_hash, "previous_until": previous_until},
    )
    if not done.rowcount:
        raise no_key(key_id)


def revoke_key(conn: Conn, key_id: str) -> None:
    """End a key and its sessions.

    Raises:
        NotFound: there is none, or it is revoked already.
        PolicyError: it is the last administrator (`last_admin`).
    """
    if not conn.execute(sql("revoke_key"), {"key_id": key_id}).rowcount:
        raise no_key(key_id)
    conn.execute(sql("end_sessions_of"), {"kind": "key", "subject": key_id})


def touch_key(conn: Conn, key_id: str) -> None:
    """Note that it was used."""
    conn.execute(sql("touch_key"), {"key_id": key_id})


def has_admin(conn: Conn, now: datetime) -> bool:
    """Whether a key or a person administers the installation now."""
    row = conn.execute(sql("has_admin"), {"now": now}).fetchone()
    return bool(row and row[0])


def put_member(conn: Conn, **values: Any) -> None:
    """Store or change a person; names as in `MemberRow`. The last admin stays one."""
    conn.execute(sql("put_member"), values)


def get_member(conn: Conn, subject: str) -> MemberRow | None:
    """One person, removed ones too."""
    with conn.cursor(row_factory=class_row(MemberRow)) as cursor:
        return cursor.execute(sql("get_member"), {"subject": subject}).fetchone()


def list_members(conn: Conn) -> list[MemberRow]:
    """All people by subject."""
    with conn.cursor(row_factory=class_row(MemberRow)) as cursor:
        return cursor.execute(sql("list_members")).fetchall()


def remove_member(conn: Conn, subject: str) -> None:
    """End a person's access and sessions; NotFound, or PolicyError for the last admin."""
    if not conn.execute(sql("remove_member"), {"subject": subject}).rowcount:
        raise no_member(subject)
    conn.execute(sql("end_sessions_of"), {"kind": "member", "subject": subject})


def add_session(
    conn: Conn,
    *,
    session_hash: bytes,
    kind: str,
    subject: str,
    payload: bytes,
    now: datetime,
    expires_at: datetime,
) -> None:
    """Store a session; expired ones are dropped on the way."""
    conn.execute(sql("drop_expired_sessions"), {"now": now})
    conn.execute(
        sql("add_session"),
        {
            "session_hash": session_hash,
            "kind": kind,
            "subject": subject,
            "payload": payload,
            "expires_at": expires_at,
        },
    )


def get_session(conn: Conn, session_hash: bytes, now: datetime) -> SessionRow | None:
    """The session, unless it has expired."""
    with conn.cursor(row_factory=class_row(SessionRow)) as cursor:
        return cursor.execute(
            sql("get_session"), {"session_hash": session_hash, "now": now}
        ).fetchone()


def end_session(conn: Conn, session_hash: bytes) -> None:
    """Sign one browser out."""
    conn.execute(sql("end_session"), {"session_hash": session_hash})


def add_event(conn: Conn, *, actor: str, event: str, subject: str, **details: Any) -> None:
    """Append to the log of access."""
    conn.execute(
        sql("add_access_event"),
        {"actor": actor, "event": event, "subject": subject, "details": Jsonb(details)},
    )


def list_events(conn: Conn) -> list[dict[str, Any]]:
    """The log of access, oldest first."""
    return rows(conn, "list_access_events")


def scope_overview(conn: Conn, names: Sequence[str] | None) -> list[dict[str, Any]]:
    """Name, title and number of documents of open scopes; None: all of them."""
    return rows(conn, "scope_overview", {"names": None if names is None else list(names)})


def readable_documents(conn: Conn, audiences: Sequence[str]) -> dict[str, int]:
    """How many documents of the transaction's scopes somebody of these audiences may read."""
    found = rows(conn, "readable_documents", {"audiences": list(audiences)})
    return {row["name"]: int(row["documents"]) for row in found}


def backlog(conn: Conn) -> dict[str, Any]:
    """Counts of documents, verdicts and jobs by state, and the age of the oldest pending one."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(sql("backlog")).fetchone() or {}


def no_key(key_id: str) -> NotFound:
    """What a caller hears about a key that is not there for it."""
    return NotFound(f"There is no active key {key_id!r}.", next_step="List the keys.")


def no_member(subject: str) -> NotFound:
    """What a caller hears about a person who is not there for it."""
    return NotFound(f"There is no member {subject[:100]!r}.", next_step="List the members.")
