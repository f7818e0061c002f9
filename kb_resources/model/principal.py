"""Who asks: id, roles and the audiences held; resolved once per request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a read or a change.

    Attributes:
        id: stable, opaque name used as actor in logs ("cli:local", "user:42").
        audiences: names held; a passage with audiences is visible to holders of at least one.
        roles: of viewer, editor, admin, system.
        scopes: scope names the caller may use, or None for all (local command line only).
    """

    id: str
    audiences: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset({"viewer"})
    scopes: frozenset[str] | None = None
