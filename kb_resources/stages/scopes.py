"""Scopes as people manage them: make, look at, configure, rename, close, expire.

Belongs here: the use cases, each in one transaction with its actor on record. What does not: rows
(`store.scopes`), and acting on settings, which the stages do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from kb_resources.errors import InputError
from kb_resources.model import DocumentKey
from kb_resources.stages import removal
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import scopes
from kb_resources.store.pool import Database
from kb_resources.store.scopes import Scope, ScopeSettings
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class ScopeOverview:
    """A scope with what is in it.

    Attributes:
        scope: name, title, settings, since when closed.
        documents: that hold now.
        passages: of these.
        history: what was changed about the scope, oldest first: `at`, `event`, `actor`, `details`.
    """

    scope: Scope
    documents: int
    passages: int
    history: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Configured:
    """A scope whose settings were changed, and the settings before."""

    scope: Scope
    before: ScopeSettings


def create(
    database: Database,
    name: str,
    *,
    title: str | None = None,
    settings: ScopeSettings | None = None,
    languages: Sequence[str] = (),
    model: str = "",
    actor: str,
) -> Scope:
    """Make a scope.

    Args:
        database: of the installation.
        name: of the scope.
        title: for people, or None.
        settings: what holds for its documents.
        languages: the installation's, for settings that name none.
        model: the installation's, for settings that name none; empty: not known here.
        actor: who makes it.

    Raises:
        ConflictError: the name is taken (`scope_exists`).
        InputError: name, title or a setting is malformed, or no text is ever told to be in a
            language (`unknown_language`).
    """
    wanted = settings or ScopeSettings()
    if not wanted.languages:
        wanted = replace(wanted, languages=tuple(sorted(languages)))
    scopes.check_limit(wanted, model)
    with database.transaction("pipeline") as conn:
        return scopes.create(conn, name, title=title, settings=wanted, actor=actor)


def overview(database: Database, name: str, now: datetime) -> ScopeOverview:
    """One scope with its numbers and its log; NotFound for an unknown one."""
    with database.transaction("pipeline") as conn, conn.cursor(row_factory=dict_row) as cursor:
        scope = scopes.get(conn, name)
        counted = cursor.execute(sql("scope_counts"), {"scope": name, "now": now}).fetchone() or {}
        return ScopeOverview(
            scope,
            counted.get("documents", 0),
            counted.get("passages", 0),
            tuple(scopes.history(conn, name)),
        )


def overviews(database: Database, now: datetime) -> list[ScopeOverview]:
    """All scopes with their numbers, by name."""
    with database.transaction("pipeline") as conn, conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(sql("scope_counts"), {"scope": None, "now": now}).fetchall()
        counted = {row["name"]: (row["documents"], row["passages"]) for row in rows}
        return [
            ScopeOverview(scope, *counted.get(scope.name, (0, 0)))
            for scope in scopes.list_all(conn)
        ]


def configure(
    database: Database, name: str, changes: Mapping[str, Any], *, model: str = "", actor: str
) -> Configured:
    """Change some settings; they hold for documents from their next run on.

    Args:
        database: of the installation.
        name: of the scope.
        changes: values by the names of `ScopeSettings`.
        model: the installation's, where the scope names none; empty: not known here.
        actor: who changes them.

    Raises:
        NotFound: no such scope.
        InputError: an unknown name, a malformed value, or a language that no text is ever told to
            be in (`unknown_language`).
    """
    known = {item.name for item in fields(ScopeSettings)}
    if unknown := sorted(set(changes) - known):
        raise InputError(
            f"{unknown[0]!r} is not a setting of a scope.",
            next_step=f"Use one of {', '.join(sorted(known))}.",
        )
    with database.transaction("pipeline") as conn:
        before = scopes.locked(conn, name).settings
        settings = replace(before, **changes)
        scopes.check_limit(settings, model)
        return Configured(scopes.configure(conn, name, settings, actor=actor), before)


def rename(database: Database, name: str, title: str | None, *, actor: str) -> Scope:
    """Change the title; None takes it away. The name is a key and stays."""
    with database.transaction("pipeline") as conn:
        return scopes.rename(conn, name, title, actor=actor)


def close(
    database: Database, name: str, now: datetime, *, actor: str, anyway: bool = False
) -> Scope:
    """Take no more documents; what is there stays readable. Closing twice is no error.

    Args:
        database: of the installation.
        name: of the scope.
        now: since when it is closed.
        actor: who closes it.
        anyway: also where uploads wait for it or are at work; those end as failed.

    Raises:
        NotFound: no such scope.
        ConflictError: uploads wait for it or are at work (`scope_busy`).
    """
    with database.transaction("pipeline") as conn:
        if not anyway:
            scopes.require_idle(conn, name)
        return scopes.set_closed(conn, name, now, actor=actor)


def reopen(database: Database, name: str, *, actor: str) -> Scope:
    """Take documents again."""
    with database.transaction("pipeline") as conn:
        return scopes.set_closed(conn, name, None, actor=actor)


def outlived(
    database: Database, name: str, now: datetime, *, limit: int | None = None
) -> list[str]:
    """Documents that the scope's retention has run out for, oldest first; none without one."""
    with database.transaction("pipeline") as conn:
        days = scopes.get(conn, name).settings.retention_days
        if not days:
            return []
        given = {"scope": name, "before": now - timedelta(days=days), "limit": limit}
        rows = conn.execute(sql("outlived_documents"), given).fetchall()
    return [str(document_id) for (document_id,) in rows]


@dataclass(frozen=True, slots=True)
class Expired:
    """What a retention that ran out has done.

    Attributes:
        documents: ids of the removed ones.
        woken: documents that repeated bytes of a removed one; to be taken through the line.
    """

    documents: tuple[str, ...] = ()
    woken: tuple[DocumentKey, ...] = ()


def expire(caps: Capabilities, name: str, *, actor: str) -> Expired:
    """Remove what outlived the scope's retention; each can be restored.

    Args:
        caps: of the pipeline.
        name: of the scope.
        actor: who asks.

    Raises:
        NotFound: no such scope.
    """
    found = outlived(caps.database, name, caps.clock())
    if not found:
        return Expired()
    with caps.database.transaction("pipeline") as conn:
        days = scopes.get(conn, name).settings.retention_days
    reason = f"The retention of {days} days in {name} ran out."
    woken: list[DocumentKey] = []
    for document_id in found:
        key = DocumentKey(name, document_id)
        woken += removal.remove(caps, key, actor=actor, reason=reason).to_run
    with caps.database.transaction("pipeline") as conn:
        details = {"documents": len(found), "retention_days": days}
        scopes.log(conn, name, "expired", actor=actor, details=details)
    return Expired(tuple(found), tuple(woken))
