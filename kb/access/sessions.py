"""Server-side sessions of browsers.

Belongs here: opening, recognising and ending them. What does not: cookies (`kb.http`). The cookie
is 32 random bytes; the table holds its keyed hash and a payload that only the cookie's bytes
together with the secret open. Rights are looked up at each request, so that revoking or rotating a
key, or removing a member, ends its sessions; a rotated key's when its old secret holds no more.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from kb.access import keys
from kb.access.identity import Identity, Role, held_audiences, parse_role
from kb.access.members import Authoriser, Grant
from kb.access.secret import Secret
from kb_resources.store import access
from kb_resources.store.pool import Database

LIFETIME = timedelta(hours=12)
_HASH, _SEAL = "session", "session-payload"


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A new session: the cookie's value, the token for changes, and who it is."""

    cookie: str
    csrf: str
    expires_at: datetime
    identity: Identity


def open_for_key(
    database: Database, secret: Secret, identity: Identity, token: str, now: datetime
) -> OpenedSession:
    """Sign a browser in with a key that was recognised; it stays as long as this secret holds."""
    cookie, csrf, expires_at = _open(
        database,
        secret,
        "key",
        identity.id.removeprefix("key:"),
        {"mark": keys.mark(secret, token).hex()},
        identity.actor,
        now,
    )
    return OpenedSession(cookie, csrf, expires_at, _with_csrf(identity, csrf))


def open_for_member(
    database: Database, secret: Secret, grant: Grant, now: datetime
) -> OpenedSession:
    """Sign a browser in for a person whom the identity provider vouched for."""
    identity = member_identity(grant)
    cookie, csrf, expires_at = _open(
        database, secret, "member", grant.subject, {"name": grant.name}, identity.actor, now
    )
    return OpenedSession(cookie, csrf, expires_at, _with_csrf(identity, csrf))


def recognise(
    database: Database, secret: Secret, authoriser: Authoriser, cookie: str, now: datetime
) -> Identity | None:
    """The identity behind a cookie, with the rights that hold now; None: sign in again.

    Raises:
        UnavailableError: who may do what is not known freshly enough (`roles_stale`).
    """
    with database.transaction("app") as conn:
        row = access.get_session(conn, secret.digest(_HASH, cookie), now)
        key = access.get_key(conn, row.subject) if row and row.kind == "key" else None
    if row is None:
        return None
    payload = json.loads(secret.unseal(_SEAL, row.payload, salt=cookie.encode()))
    if row.kind == "key":
        presented = bytes.fromhex(payload.get("mark", ""))
        if key is None or not keys.holds(key, presented, now):
            return None
        return keys.identity_of(key, payload["csrf"])
    grant = authoriser.grant(row.subject, now)
    return None if grant is None else _with_csrf(member_identity(grant), payload["csrf"])


def end(database: Database, secret: Secret, cookie: str, *, by: str) -> None:
    """Sign a browser out; nothing happens where there is no such session."""
    with database.transaction("app") as conn:
        access.end_session(conn, secret.digest(_HASH, cookie))
        access.add_event(conn, actor=by, event="signed_out", subject=by)


def member_identity(grant: Grant) -> Identity:
    """Who a person is here."""
    own, role = f"user:{grant.subject}", min(parse_role(grant.role), Role.ADMIN)
    return Identity(
        id=own,
        name=grant.name or grant.subject,
        role=role,
        scopes=None if grant.scopes is None else frozenset(grant.scopes),
        audiences=held_audiences(own, grant.audiences, role),
        actor=own,
    )


def _open(
    database: Database,
    secret: Secret,
    kind: str,
    subject: str,
    payload: dict[str, str],
    actor: str,
    now: datetime,
) -> tuple[str, str, datetime]:
    cookie, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    data = json.dumps(payload | {"csrf": csrf}).encode()
    expires_at = now + LIFETIME
    with database.transaction("app") as conn:
        access.add_session(
            conn,
            session_hash=secret.digest(_HASH, cookie),
            kind=kind,
            subject=subject,
            payload=secret.seal(_SEAL, data, salt=cookie.encode()),
            now=now,
            expires_at=expires_at,
        )
        access.add_event(conn, actor=actor, event="signed_in", subject=actor, kind=kind)
    return cookie, csrf, expires_at


def _with_csrf(identity: Identity, csrf: str) -> Identity:
    return Identity(
        id=identity.id,
        name=identity.name,
        role=identity.role,
        scopes=identity.scopes,
        audiences=identity.audiences,
        actor=identity.actor,
        csrf=csrf,
    )
