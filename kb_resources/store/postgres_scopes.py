"""The registry of scopes in Postgres, a transaction each.

Belongs here: `contract.ScopeRegistry` over `scopes`. What does not: what settings mean.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from kb_resources.store import scopes
from kb_resources.store.pool import Database
from kb_resources.store.scopes import Scope, ScopeSettings


class PgRegistry:
    """Scopes by name."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        name: str,
        *,
        title: str | None = None,
        settings: ScopeSettings | None = None,
        actor: str = "store",
    ) -> Scope:
        """See `contract.ScopeRegistry`."""
        wanted = settings or ScopeSettings()
        with self._database.transaction("pipeline") as conn:
            return scopes.create(conn, name, title=title, settings=wanted, actor=actor)

    def get(self, name: str) -> Scope:
        """See `contract.ScopeRegistry`."""
        with self._database.transaction("pipeline") as conn:
            return scopes.get(conn, name)

    def all(self) -> list[Scope]:
        """See `contract.ScopeRegistry`."""
        with self._database.transaction("pipeline") as conn:
            return scopes.list_all(conn)

    def configure(self, name: str, settings: ScopeSettings, *, actor: str = "store") -> Scope:
        """See `contract.ScopeRegistry`."""
        with self._database.transaction("pipeline") as conn:
            return scopes.configure(conn, name, settings, actor=actor)

    def rename(self, name: str, title: str | None, *, actor: str = "store") -> Scope:
        """See `contract.ScopeRegistry`."""
        with self._database.transaction("pipeline") as conn:
            return scopes.rename(conn, name, title, actor=actor)

    def close(self, name: str, *, actor: str = "store") -> Scope:
        """See `contract.ScopeRegistry`."""
        with self._database.transaction("pipeline") as conn:
            return scopes.set_closed(conn, name, self._clock(), actor=actor)

    def reopen(self, name: str, *, actor: str = "store") -> Scope:
        """See `contract.ScopeRegistry`."""
        with self._database.transaction("pipeline") as conn:
            return scopes.set_closed(conn, name, None, actor=actor)
