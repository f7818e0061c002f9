"""Kinds of audiences, who holds them, and the permissions behind them; shapes and rules only.

A document is for the organisation, an agent, a project, a chat or a user. Each kind is a reserved
form of audience names, so that one filter on names serves them all; a principal's set of names is
resolved once a request. Belongs here: names and rules. What does not: finding out who somebody is
and where they belong. Kinds and permissions are those of PostgreSQL-based assistants that keep
`scope` and `scope_id` per document; row filters by set: postgresql.org/docs, "Array Operators".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from kb_resources.errors import InputError, PolicyError
from kb_resources.model.ids import validate_audience
from kb_resources.model.principal import Principal

READERS = "can:read"
"""Held by everybody with the permission to read; what the organisation and agents publish to."""


class AudienceKind(StrEnum):
    """Whom a document is for."""

    ORGANIZATION = "organization"
    AGENT = "agent"
    PROJECT = "project"
    CHAT = "chat"
    USER = "user"


RESERVED = tuple(f"{kind}:" for kind in AudienceKind if kind is not AudienceKind.ORGANIZATION)
"""Beginnings of names that only their holders, and administrators, may publish to."""


class Permission(StrEnum):
    """What somebody may do with documents, whatever the keys are called outside."""

    READ = "read"
    """Read what the organisation and its agents publish."""
    CREATE = "create"
    """Publish to oneself, one's projects and chats."""
    ADMIN = "admin"
    """Publish for the organisation and agents; read every document."""


@dataclass(frozen=True, slots=True)
class PermissionMap:
    """Names of the permissions outside, and which roles have them; every key can be renamed.

    Attributes:
        keys: permission to its key in the caller's own system.
        roles: role to the keys it has.
    """

    keys: Mapping[Permission, str] = field(
        default_factory=lambda: {
            Permission.READ: "ai.read",
            Permission.CREATE: "ai.create",
            Permission.ADMIN: "ai.admin",
        }
    )
    roles: Mapping[str, frozenset[str]] = field(
        default_factory=lambda: {
            "owner": frozenset({"ai.read", "ai.create", "ai.admin"}),
            "admin": frozenset({"ai.read", "ai.create", "ai.admin"}),
            "member": frozenset({"ai.read", "ai.create"}),
        }
    )

    def __post_init__(self) -> None:
        missing = [permission.value for permission in Permission if permission not in self.keys]
        unknown = set().union(*self.roles.values()) - set(self.keys.values())
        if missing or unknown or len(set(self.keys.values())) != len(self.keys):
            raise InputError(
                "The permission map names no key for "
                f"{', '.join(missing) or 'nothing'} and unknown keys "
                f"{', '.join(sorted(unknown)) or 'none'}.",
                next_step="Give read, create and admin one key each, and roles only those.",
            )

    @classmethod
    def renamed(cls, keys: Mapping[Permission, str]) -> Self:
        """The default map with other keys.

        Raises:
            InputError: a permission has no key, or two have the same.
        """
        default = cls()
        roles = {
            role: frozenset(keys[one] for one in default.granted(held) if one in keys)
            for role, held in default.roles.items()
        }
        return cls(dict(keys), roles)

    def of(self, roles: Iterable[str]) -> frozenset[Permission]:
        """Permissions of the holder of these roles; unknown roles have none."""
        return self.granted(set().union(*(self.roles.get(role, frozenset()) for role in roles)))

    def granted(self, keys: Collection[str]) -> frozenset[Permission]:
        """Permissions behind these keys; unknown keys open nothing."""
        return frozenset(permission for permission, key in self.keys.items() if key in keys)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody as their own system knows them.

    Attributes:
        id: stable name, without kind.
        roles: in the organisation.
        projects: ids of the projects they own.
        chats: ids of the chats they can read.
        agents: ids of the agents that they run as.
    """

    id: str
    roles: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()


def audiences_of(kind: AudienceKind, subject: str = "", *, owner: str = "") -> tuple[str, ...]:
    """Audience names of a document.

    Args:
        kind: whom it is for.
        subject: id of the agent, project, chat or user; none for the organisation.
        owner: id of who published it; may read it too, except what is for everybody.

    Raises:
        InputError: the subject is missing, or given for the organisation.
    """
    if (kind is AudienceKind.ORGANIZATION) == bool(subject):
        raise InputError(
            f"A document for {kind.value} needs {'no' if subject else 'an'} id.",
            next_step="Name the agent, project, chat or user it is for.",
        )
    if kind is AudienceKind.ORGANIZATION:
        return (READERS,)
    names = {validate_audience(f"{kind.value}:{subject}")}
    if kind is AudienceKind.AGENT:
        names.add(READERS)
    elif owner:
        names.add(validate_audience(f"user:{owner}"))
    return tuple(sorted(names))


def names_held(
    owner: str, others: Iterable[str], permissions: Collection[Permission]
) -> frozenset[str]:
    """All audience names of somebody: their own, those given, and what every reader holds.

    Args:
        owner: the audience of the person alone, `user:…`.
        others: names given to them.
        permissions: what they may do.
    """
    held = {owner, *others}
    if Permission.READ in permissions:
        held.add(READERS)
    return frozenset(validate_audience(name) for name in held)


def not_theirs(names: Iterable[str], held: Collection[str]) -> list[str]:
    """Names of a reserved kind that somebody does not hold, and so may not publish to."""
    return [name for name in names if name.startswith(RESERVED) and name not in held]


def held_by(person: Person, permissions: PermissionMap) -> frozenset[str]:
    """All audience names that a person holds."""
    others = [f"project:{name}" for name in person.projects]
    others += [f"chat:{name}" for name in person.chats]
    others += [f"agent:{name}" for name in person.agents]
    return names_held(f"user:{person.id}", others, permissions.of(person.roles))


def resolve(
    person: Person, permissions: PermissionMap, scopes: frozenset[str] | None = None
) -> Principal:
    """The principal of a request; with the permission `admin` audiences hide nothing from it."""
    sees_all = Permission.ADMIN in permissions.of(person.roles)
    roles = person.roles | (frozenset({"system"}) if sees_all else frozenset())
    return Principal(f"user:{person.id}", held_by(person, permissions), roles, scopes)


def check_publish(person: Person, permissions: PermissionMap, audiences: Iterable[str]) -> None:
    """Refuse to publish where the person has no right to.

    Raises:
        PolicyError: no permission to create, a reserved name that is not held, or everybody
            without the permission `admin`.
    """
    held = permissions.of(person.roles)
    if Permission.ADMIN in held:
        return
    names = [validate_audience(name) for name in audiences]
    mine = held_by(person, permissions) - {READERS}
    for_all = not names or READERS in names
    foreign = not_theirs(names, mine)
    agents = [name for name in names if name.startswith("agent:")]
    if Permission.CREATE not in held or for_all or foreign or agents:
        needed = Permission.ADMIN if Permission.CREATE in held else Permission.CREATE
        raise PolicyError(
            "This audience is not yours to publish to.",
            next_step=f"Ask for the permission {permissions.keys[needed]}, or publish to yourself.",
            code="audience_reserved",
        )


def initial_audiences(owner: str) -> tuple[str, ...]:
    """Audiences of what a person uploads without a word about who may read it: that person."""
    return audiences_of(AudienceKind.USER, owner)
