"""Who a request runs as, and what roles allow.

Belongs here: roles in order, what an identity may use and publish to. What does not: finding out
who somebody is (`keys`, `sessions`). An identity is resolved once a request and then only read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kb_resources.errors import InputError, NotFound, PolicyError
from kb_resources.model import Principal, content_hash, validate_audience, validate_scope
from kb_resources.model.audiences import Permission, names_held, not_theirs


class Role(IntEnum):
    """What somebody may do; each role may do what those before it may.

    viewer reads and searches; editor also ingests, reviews, removes and maps audiences; admin also
    manages keys and members and reads every document of its scopes; system is for services.
    """

    VIEWER = 1
    EDITOR = 2
    ADMIN = 3
    SYSTEM = 4

    @property
    def label(self) -> str:
        """Name in JSON and on the command line."""
        return self.name.lower()


ROLE_NAMES = tuple(role.label for role in Role)
ALLOWED: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.READ}),
    Role.EDITOR: frozenset({Permission.READ, Permission.CREATE}),
    Role.ADMIN: frozenset(Permission),
    Role.SYSTEM: frozenset(Permission),
}
"""What each role may do with documents."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who came in.

    Attributes:
        id: `key:<id>` or `user:<subject>`.
        name: for people.
        role: the highest role held.
        scopes: scope names that may be used; None: all.
        audiences: names held, `user:<self>` among them.
        actor: what logs name: the id, with whom a service speaks for where it says so.
        csrf: the session's token, None for a caller that sends its key with every request.
    """

    id: str
    name: str
    role: Role
    scopes: frozenset[str] | None
    audiences: frozenset[str]
    actor: str
    csrf: str | None = None

    @property
    def own_audience(self) -> str:
        """The audience of this person or key alone."""
        return own_audience(self.id)

    @property
    def reads_everything(self) -> bool:
        """Whether audiences hide nothing inside the scopes."""
        return Permission.ADMIN in ALLOWED[self.role]

    def may(self, role: Role) -> bool:
        """Whether the role is held."""
        return self.role >= role

    def require(self, role: Role) -> None:
        """PolicyError (`forbidden`) unless the role is held."""
        if self.role < role:
            raise PolicyError(
                f"This needs the role {role.label}, not {self.role.label}.",
                next_step="Ask an administrator.",
                code="forbidden",
            )

    def use_scope(self, scope: str | None) -> str:
        """The scope, if it may be used; one that may not is indistinguishable from none."""
        name = validate_scope(scope)
        if self.scopes is not None and name not in self.scopes:
            raise NotFound(
                f"There is no scope {name!r}.",
                next_step="Use one of those that /api/v1/me names.",
            )
        return name

    def principal(self, narrowed_to: Iterable[str] | None = None) -> Principal:
        """The principal of a search, with all audiences held or some of them.

        Raises:
            PolicyError: an audience is named that is not held (`audience_not_held`).
        """
        roles = frozenset({self.role.label})
        if narrowed_to is None:
            everything = frozenset({"system"}) if self.reads_everything else frozenset()
            return Principal(self.actor, self.audiences, roles | everything, self.scopes)
        names = frozenset(validate_audience(name) for name in narrowed_to)
        if not self.reads_everything and not names <= self.audiences:
            raise PolicyError(
                f"You do not hold {', '.join(sorted(names - self.audiences))}.",
                next_step="Leave the audiences out, or name only those you hold.",
                code="audience_not_held",
            )
        return Principal(self.actor, names, roles - {"system"}, self.scopes)

    def visible_audiences(self) -> list[str] | None:
        """Audiences that listings filter by; None: nothing is hidden."""
        return None if self.reads_everything else sorted(self.audiences)

    def publish_to(self, audiences: Iterable[str] | None) -> tuple[str, ...]:
        """Audiences of something this identity publishes; None: itself alone.

        Raises:
            InputError: a name does not fit.
            PolicyError: a reserved kind that is not held (`audience_reserved`).
        """
        if audiences is None:
            return (self.own_audience,)
        names = sorted({validate_audience(name) for name in audiences})
        if not self.reads_everything and (foreign := not_theirs(names, self.audiences)):
            raise PolicyError(
                f"{foreign[0]!r} belongs to somebody else.",
                next_step="Publish to yourself, to everyone, or to a name without a kind.",
                code="audience_reserved",
            )
        return tuple(names)


def check_grantable(giver: Identity | None, role: Role, scopes: Sequence[str] | None) -> None:
    """Nobody gives more than they have; None, the command line, gives anything.

    Raises:
        PolicyError: role or scopes are beyond the giver (`beyond_giver`).
    """
    if giver is None:
        return
    wider = giver.scopes is not None and (scopes is None or not giver.scopes.issuperset(scopes))
    if role > giver.role or wider:
        raise PolicyError(
            "Nobody can give more than they have.",
            next_step="Name a role and scopes that you have.",
            code="beyond_giver",
        )


def held_audiences(identity_id: str, given: Iterable[str], role: Role) -> frozenset[str]:
    """All names somebody holds: those given, their own, and what every reader holds."""
    return names_held(own_audience(identity_id), given, ALLOWED[role])


def role_of(permissions: Collection[Permission]) -> Role | None:
    """The highest role whose permissions are all held; None: no access."""
    held = frozenset(permissions)
    fitting = (role for role in (Role.ADMIN, Role.EDITOR, Role.VIEWER) if ALLOWED[role] <= held)
    return next(fitting, None)


def own_audience(identity_id: str) -> str:
    """`user:<id>` as an audience name; of an id that no name can hold, its hash."""
    plain = identity_id.removeprefix("user:")
    try:
        return validate_audience(f"user:{plain}")
    except InputError:
        return f"user:{content_hash(plain)[:32]}"


def parse_role(name: str) -> Role:
    """The role of a name; InputError for another."""
    if name not in ROLE_NAMES:
        raise InputError(
            f"{name!r} is not a role.", next_step=f"Use one of {', '.join(ROLE_NAMES)}."
        )
    return Role[name.upper()]
