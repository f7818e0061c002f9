"""API keys: made, shown once, rotated without a gap, revoked, recognised.

Belongs here: the use cases around keys. What does not: roles (`identity`), rows
(`kb_resources.store.access`). A key is `kb_<id>_<secret>`: the id finds the row, the secret is
compared by keyed hash in constant time; a prefix makes leaked keys findable by secret scanners.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kb.access.identity import Identity, check_grantable, held_audiences, parse_role
from kb.access.secret import Secret, same
from kb_resources.errors import InputError, PolicyError
from kb_resources.model import validate_audience, validate_scope
from kb_resources.store import access
from kb_resources.store.access import KeyRow
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database
from kb_resources.supersede import check_instant

_TOKEN = re.compile(r"kb_(?P<id>[a-z0-9]{12})_(?P<secret>[A-Za-z0-9_-]{43})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_PURPOSE = "api-key"
DEFAULT_OVERLAP = timedelta(hours=24)
"""How long a rotated key's old secret holds, so that callers change over one by one."""
MAX_OVERLAP = timedelta(days=30)
_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with its secret, which is nowhere else.

    Attributes:
        key_id: public id.
        token: what callers send; shown once.
        previous_until: until when the secret before holds, None for a new key.
    """

    key_id: str
    token: str
    previous_until: datetime | None = None


def create(
    database: Database,
    secret: Secret,
    *,
    name: str,
    role: str,
    scopes: Sequence[str] | None,
    audiences: Sequence[str],
    expires_at: datetime | None,
    by: str,
    now: datetime,
    maker: Identity | None = None,
) -> IssuedKey:
    """Make a key.

    Args:
        database: of this installation.
        secret: its secret.
        name: what it is for.
        role: viewer, editor, admin or system.
        scopes: scope names it opens; None: all.
        audiences: names it holds.
        expires_at: aware time, or None.
        by: actor for the log.
        now: aware time.
        maker: who asks over HTTP; nobody gives more than they have. None: the command line.

    Raises:
        InputError: a value does not fit.
        PolicyError: the key would be able to do more than its maker (`beyond_giver`).
    """
    granted = parse_role(role)
    names = None if scopes is None else sorted({validate_scope(scope) for scope in scopes})
    held = sorted({validate_audience(audience) for audience in audiences})
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise InputError("A key needs a name.", next_step="Say what it is for, on one line.")
    if names == []:
        raise InputError(
            "A key that opens no scope is of no use.", next_step="Name scopes, or say all of them."
        )
    if expires_at is not None and check_instant(expires_at) <= now:
        raise InputError(
            "The key would have expired already.",
            next_step="Give a time to come, with its zone.",
        )
    check_grantable(maker, granted, names)
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
    token = _token(key_id)
    with database.transaction("app") as conn:
        access.add_key(
            conn,
            key_id=key_id,
            name=name,
            secret_hash=secret.digest(_PURPOSE, token),
            role=granted.label,
            scopes=names,
            audiences=held,
            created_by=by,
            expires_at=expires_at,
        )
        access.add_event(
            conn,
            actor=by,
            event="key_created",
            subject=key_id,
            role=granted.label,
            scopes=names,
            audiences=held,
        )
    return IssuedKey(key_id, token)


def rotate(
    database: Database,
    secret: Secret,
    key_id: str,
    *,
    by: str,
    now: datetime,
    overlap: timedelta = DEFAULT_OVERLAP,
    maker: Identity | None = None,
) -> IssuedKey:
    """Give a key another secret; the old one holds for `overlap`.

    Raises:
        NotFound: no active key has this id.
        InputError: the overlap is negative or longer than 30 days.
    """
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise InputError("The overlap must lie between 0 and 30 days.", next_step="Name another.")
    token = _token(key_id)
    until = now + overlap
    with database.transaction("app") as conn:
        _check_reach(conn, key_id, maker)
        access.rotate_key(
            conn, key_id, secret_hash=secret.digest(_PURPOSE, token), previous_until=until
        )
        access.add_event(
            conn, actor=by, event="key_rotated", subject=key_id, previous_until=until.isoformat()
        )
    return IssuedKey(key_id, token, until)


def revoke(database: Database, key_id: str, *, by: str, maker: Identity | None = None) -> None:
    """End a key and its sessions at once.

    Raises:
        NotFound: no active key has this id.
        PolicyError: it is the last administrator (`last_admin`).
    """
    with database.transaction("app") as conn:
        _check_reach(conn, key_id, maker)
        access.revoke_key(conn, key_id)
        access.add_event(conn, actor=by, event="key_revoked", subject=key_id)


def recognise(database: Database, secret: Secret, token: str, now: datetime) -> Identity | None:
    """The identity of a key that holds now, else None; a wrong secret costs the same time."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    presented = mark(secret, token)
    with database.transaction("app") as conn:
        row = access.get_key(conn, match["id"])
        if row is None or not holds(row, presented, now):
            return None
        if row.last_used_at is None or now - row.last_used_at > _NOTED_EVERY:
            access.touch_key(conn, row.key_id)
    return identity_of(row)


def active(row: KeyRow, now: datetime) -> bool:
    """Whether a key is neither revoked nor expired."""
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now)


def identity_of(row: KeyRow, csrf: str | None = None) -> Identity:
    """Who a key stands for."""
    own, role = f"key:{row.key_id}", parse_role(row.role)
    return Identity(
        id=own,
        name=row.name,
        role=role,
        scopes=None if row.scopes is None else frozenset(row.scopes),
        audiences=held_audiences(own, row.audiences, role),
        actor=own,
        csrf=csrf,
    )


def mark(secret: Secret, token: str) -> bytes:
    """Keyed hash of a key's token, by which a session remembers what it was opened with."""
    return secret.digest(_PURPOSE, token)


def holds(row: KeyRow, presented: bytes, now: datetime) -> bool:
    """Whether the hash is that of a key's secret now, or of the one before within its overlap."""
    current = same(row.secret_hash, presented)
    previous = same(row.previous_hash or bytes(32), presented) and (
        row.previous_until is not None and row.previous_until > now
    )
    return (current or previous) and active(row, now)


def _token(key_id: str) -> str:
    return f"kb_{key_id}_{secrets.token_urlsafe(32)}"


def _check_reach(conn: Conn, key_id: str, maker: Identity | None) -> None:
    """A key outside the maker's reach is as good as none."""
    row = access.get_key(conn, key_id)
    if row is None:
        return
    try:
        check_grantable(maker, parse_role(row.role), row.scopes)
    except PolicyError:
        raise access.no_key(key_id) from None
