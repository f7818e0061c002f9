"""What people of the identity provider may do: our own table, or a feed from elsewhere.

Belongs here: finding a person's grant, fresh or not at all. What does not: signing in (`oidc`).
A feed that has not been written for longer than the bound answers nobody: a right that was
withdrawn meanwhile must not live on in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from kb.access.identity import Identity, Role, check_grantable, parse_role, role_of
from kb_resources.errors import InputError, PolicyError, UnavailableError
from kb_resources.model import validate_audience, validate_scope
from kb_resources.model.audiences import PermissionMap
from kb_resources.store import access
from kb_resources.store.access import MemberRow
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database


@dataclass(frozen=True, slots=True)
class Grant:
    """A person's rights; `scopes` None opens all."""

    subject: str
    name: str
    role: str
    scopes: tuple[str, ...] | None
    audiences: tuple[str, ...]


_Feed = tuple[datetime, Mapping[str, Grant]]
"""When a feed was issued, and its people by subject; of two with one subject the first."""


class Authoriser(Protocol):
    """Says what a person may do now."""

    def grant(self, subject: str, now: datetime) -> Grant | None:
        """The person's rights; None: no access.

        Raises:
            UnavailableError: what is known is too old to be relied on (`roles_stale`).
        """
        ...


@dataclass(frozen=True, slots=True)
class MemberTable:
    """The table `kb.member`, read at each request and therefore always fresh."""

    database: Database

    def grant(self, subject: str, now: datetime) -> Grant | None:  # noqa: ARG002
        """See `Authoriser.grant`."""
        with self.database.transaction("app") as conn:
            row = access.get_member(conn, subject)
        if row is None or row.removed_at is not None:
            return None
        scopes = None if row.scopes is None else tuple(row.scopes)
        return Grant(row.subject, row.name, row.role, scopes, tuple(row.audiences))


@dataclass(frozen=True, slots=True)
class RoleFeed:
    """A JSON file that another system writes at least once in `max_age_s` seconds.

    `{"issued_at": "2026-01-31T12:00:00Z", "members": [{"subject": "…", "name": "…",
    "role": "viewer", "scopes": ["acme"] or null, "audiences": []}]}`. Write it beside and rename.
    In place of `role`, a member may have `permissions`: keys of the writing system, such as
    `["ai.read", "ai.create"]`; the highest role whose permissions they hold is theirs.

    Attributes:
        path: of the file.
        max_age_s: age in seconds from which it answers nobody.
        permissions: what the keys are called there.
    """

    path: Path
    max_age_s: float
    permissions: PermissionMap = field(default_factory=PermissionMap)
    _held: dict[tuple[int, int, int], _Feed] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def grant(self, subject: str, now: datetime) -> Grant | None:
        """See `Authoriser.grant`."""
        issued_at, members = self._read()
        age_s = (now - issued_at).total_seconds()
        if not -self.max_age_s <= age_s <= self.max_age_s:
            raise _stale(f"The feed of roles was issued {age_s:.0f} s ago.")
        return members.get(subject)

    def _read(self) -> _Feed:
        """The feed as it is now; a file that is the same as at the last look is not read again."""
        try:
            file = self.path.stat()
            seen = (file.st_ino, file.st_mtime_ns, file.st_size)
            if (held := self._held.get(seen)) is not None:
                return held
            value = json.loads(self.path.read_bytes())
            issued_at = datetime.fromisoformat(value["issued_at"])
            granted = (_grant(item, self.permissions) for item in reversed(value["members"]))
            members = {grant.subject: grant for grant in granted if grant is not None}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
            raise _stale(f"The feed of roles cannot be read: {error}.") from error
        if issued_at.tzinfo is None:
            raise _stale("The feed's issued_at has no time zone.")
        self._held.clear()
        self._held[seen] = issued_at, members
        return issued_at, members


def is_subject(text: str) -> bool:
    """Whether a provider's `sub` can be an actor here: 1 to 190 printable characters."""
    return 1 <= len(text) <= 190 and text.isprintable()


def list_all(database: Database, viewer: Identity | None) -> list[MemberRow]:
    """People who open nothing beyond the viewer's scopes; None, the command line, sees all."""
    with database.transaction("app") as conn:
        rows = access.list_members(conn)
    if viewer is None or viewer.scopes is None:
        return rows
    return [row for row in rows if row.scopes and viewer.scopes.issuperset(row.scopes)]


def put(
    database: Database,
    subject: str,
    *,
    name: str,
    role: str,
    scopes: Sequence[str] | None,
    audiences: Sequence[str],
    by: str,
    maker: Identity | None = None,
) -> None:
    """Give a person rights, or change them.

    Raises:
        InputError: a value does not fit.
        PolicyError: beyond the maker (`beyond_giver`), or the last administrator's (`last_admin`).
    """
    granted = min(parse_role(role), Role.ADMIN)
    names = None if scopes is None else sorted({validate_scope(scope) for scope in scopes})
    held = sorted({validate_audience(audience) for audience in audiences})
    if not is_subject(subject):
        raise InputError("This is no subject.", next_step="Use the provider's `sub`.")
    if names == []:
        raise InputError("No scope is named.", next_step="Name scopes, or say all of them.")
    check_grantable(maker, granted, names)
    with database.transaction("app") as conn:
        _check_reach(conn, subject, maker)
        access.put_member(
            conn,
            subject=subject,
            name=name,
            role=granted.label,
            scopes=names,
            audiences=held,
            created_by=by,
        )
        access.add_event(
            conn,
            actor=by,
            event="member_set",
            subject=subject,
            role=granted.label,
            scopes=names,
            audiences=held,
        )


def remove(database: Database, subject: str, *, by: str, maker: Identity | None = None) -> None:
    """End a person's access and sessions at once.

    Raises:
        NotFound: no such member for this maker.
        PolicyError: the last administrator (`last_admin`).
    """
    if not is_subject(subject):
        raise access.no_member(subject)
    with database.transaction("app") as conn:
        _check_reach(conn, subject, maker)
        access.remove_member(conn, subject)
        access.add_event(conn, actor=by, event="member_removed", subject=subject)


def _check_reach(conn: Conn, subject: str, maker: Identity | None) -> None:
    """A member outside the maker's reach is as good as none."""
    row = access.get_member(conn, subject)
    if row is None:
        return
    try:
        check_grantable(maker, parse_role(row.role), row.scopes)
    except PolicyError:
        raise access.no_member(subject) from None


def _grant(item: dict[str, Any], permissions: PermissionMap) -> Grant | None:
    """A member of the feed; None where the keys they hold open nothing here."""
    if "role" in item:
        role: Role | None = parse_role(item["role"])
    else:
        role = role_of(permissions.granted({str(key) for key in item["permissions"]}))
    if role is None:
        return None
    scopes = item.get("scopes")
    return Grant(
        subject=str(item["subject"]),
        name=str(item.get("name", "")),
        role=role.label,
        scopes=None if scopes is None else tuple(validate_scope(scope) for scope in scopes),
        audiences=tuple(validate_audience(name) for name in item.get("audiences", ())),
    )


def _stale(message: str) -> UnavailableError:
    return UnavailableError(
        message, next_step="Look at the system that writes it.", code="roles_stale"
    )
