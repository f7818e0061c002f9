"""Scopes: their settings, and the registry of them in Postgres.

Belongs here: what a scope's settings are and what may be in them; rows of kb.scope. What does not:
acting on them (`stages`). A scope's name is part of every key and never changes; its title may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from kb_resources.chunk import ChunkOptions, preset
from kb_resources.embed import known_models
from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.language import check_labels
from kb_resources.model import validate_audience, validate_language, validate_scope
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

MAX_TITLE = 200
MAX_RETENTION_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """What holds for the documents of a scope.

    Attributes:
        languages: ISO 639 codes it accepts; empty: the installation's.
        audiences: who may read documents whose source says nothing; empty: everyone in the scope.
        model: embedding model by name; empty: whichever the installation is set to.
        chunk_preset: `hierarchical`, `flat` or `sentence`; empty: the installation's.
        chunk_tokens: passage limit in tokens, 0: the installation's.
        retention_days: days after which a published document that was not published anew is to be
            removed; 0: none.
        opaque_ids: leave names out of derived document ids.

    Raises:
        InputError: a value is malformed or out of range.
    """

    languages: tuple[str, ...] = ()
    audiences: tuple[str, ...] = ()
    model: str = ""
    chunk_preset: str = ""
    chunk_tokens: int = 0
    retention_days: int = 0
    opaque_ids: bool = False

    def __post_init__(self) -> None:
        for code in self.languages:
            validate_language(code)
        for name in self.audiences:
            validate_audience(name)
        if self.chunk_preset or self.chunk_tokens:
            self.chunk_options()
        if not 0 <= self.retention_days <= MAX_RETENTION_DAYS:
            raise InputError(
                f"retention_days is {self.retention_days}.",
                next_step=f"Use 0 for none, or 1 to {MAX_RETENTION_DAYS:,}.",
            )

    def chunk_options(self, base: ChunkOptions | None = None) -> ChunkOptions:
        """How this scope's documents are cut.

        Args:
            base: the installation's options, which hold where the scope says nothing.
        """
        base = base or ChunkOptions()
        chosen = preset(self.chunk_preset) if self.chunk_preset else base
        limit = self.chunk_tokens or min(chosen.max_tokens, base.max_tokens)
        return replace(chosen, max_tokens=limit)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON without what is left to the installation."""
        return {
            item.name: list(value) if isinstance(value, tuple) else value
            for item in fields(self)
            if (value := getattr(self, item.name)) != item.default
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ScopeSettings:
        """Inverse of `to_json`; keys of later versions are passed over."""
        known = {item.name for item in fields(cls)}
        given = {name: item for name, item in value.items() if name in known}
        for name in ("languages", "audiences"):
            if name in given:
                given[name] = tuple(given[name])
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope: `closed_at` says since when it takes no documents."""

    name: str
    title: str | None
    settings: ScopeSettings
    closed_at: datetime | None = None


def check_title(title: str | None) -> str | None:
    """The title without white space at its ends, or InputError."""
    title = title.strip() if title is not None else None
    if title == "" or (title is not None and len(title) > MAX_TITLE):
        raise InputError(
            "The title is blank or too long.",
            next_step=f"Use 1 to {MAX_TITLE} characters, or none at all.",
        )
    return title


def check_limit(settings: ScopeSettings, model: str = "") -> None:
    """Raise InputError (`too_many_tokens`) where passages would be longer than the model reads.

    Args:
        settings: of a scope; where they name no model, `model` holds.
        model: the installation's; empty: not known, so that the longest of all models bounds.
    """
    name = settings.model or model
    known = {spec.name: spec.max_tokens for spec in known_models()}
    limit = known.get(name, max(known.values()))
    if settings.chunk_tokens > limit:
        reads = f"The model {name} reads" if name in known else "No model reads more than"
        raise InputError(
            f"chunk_tokens is {settings.chunk_tokens:,}. {reads} {limit:,} tokens.",
            next_step=f"Use 0 for the installation's limit, or at most {limit:,}.",
            code="too_many_tokens",
        )


def require_idle(conn: Conn, name: str) -> None:
    """Raise ConflictError (`scope_busy`) where uploads wait for a scope or are at work.

    Until the transaction ends nobody else changes the scope.
    """
    locked(conn, name)
    found = rows(conn, "unfinished_jobs", {"name": name})[0]["jobs"]
    if found:
        raise ConflictError(
            f"{found} upload{'s' if found > 1 else ''} for {name!r} are queued or at work.",
            next_step="Wait until they are through (kb scopes show), or say --anyway: "
            "they end as failed then.",
            code="scope_busy",
        )


def exists_already(name: str) -> ConflictError:
    """The error for a name that is taken."""
    error = ConflictError(
        f"The scope {name!r} exists already.",
        next_step="Choose another name, or change its settings.",
        code="scope_exists",
    )
    error.retryable = False  # type: ignore[misc]
    return error


def no_scope(name: str) -> NotFound:
    """The error for a scope that does not show."""
    return NotFound(
        f"There is no scope {name!r}.",
        next_step="List them with kb scopes list, or create it with kb scopes create.",
    )


def require_open(scope: Scope) -> None:
    """Raise PolicyError where a scope takes no more documents."""
    if scope.closed_at is not None:
        raise PolicyError(
            f"The scope {scope.name!r} is closed.",
            next_step="Name another, or reopen it with kb scopes reopen.",
            code="scope_closed",
        )


def create(
    conn: Conn, name: str, *, title: str | None, settings: ScopeSettings, actor: str
) -> Scope:
    """Make a scope; ConflictError where there is one of that name."""
    given = {
        "name": validate_scope(name),
        "title": check_title(title),
        "settings": Jsonb(settings.to_json()),
    }
    check_limit(settings)
    check_labels(settings.languages)
    made = conn.execute(sql("create_scope"), given).fetchone()
    if made is None:
        raise exists_already(name)
    log(conn, name, "created", actor=actor, details=settings.to_json())
    return get(conn, name)


def get(conn: Conn, name: str) -> Scope:
    """The scope or NotFound."""
    found = rows(conn, "show_scope", {"name": validate_scope(name)})
    if not found:
        raise no_scope(name)
    return _scope(found[0])


def locked(conn: Conn, name: str) -> Scope:
    """The scope or NotFound; nobody else changes it until the transaction ends."""
    conn.execute(sql("lock_scope"), {"name": validate_scope(name)})
    return get(conn, name)


def list_all(conn: Conn) -> list[Scope]:
    """All scopes that the connection may see, by name."""
    return [_scope(row) for row in rows(conn, "show_scopes")]


def configure(conn: Conn, name: str, settings: ScopeSettings, *, actor: str) -> Scope:
    """Replace the settings; what they do not know of stays, and so do languages taken before."""
    check_limit(settings)
    before = locked(conn, name)
    check_labels(code for code in settings.languages if code not in before.settings.languages)
    names = [item.name for item in fields(ScopeSettings)]
    given = {"name": name, "known": names, "settings": Jsonb(settings.to_json())}
    conn.execute(sql("configure_scope"), given)
    if before.settings != settings:
        log(conn, name, "settings", actor=actor, details=settings.to_json())
    return get(conn, name)


def rename(conn: Conn, name: str, title: str | None, *, actor: str) -> Scope:
    """Change the title."""
    before, title = locked(conn, name), check_title(title)
    if before.title != title:
        conn.execute(sql("rename_scope"), {"name": name, "title": title})
        details = {"title": title, "before": before.title}
        log(conn, name, "renamed", actor=actor, details=details)
    return get(conn, name)


def set_closed(conn: Conn, name: str, at: datetime | None, *, actor: str) -> Scope:
    """Close a scope at an instant, or open it again with None; twice changes nothing."""
    before = locked(conn, name)
    if (before.closed_at is None) != (at is None):
        conn.execute(sql("close_scope"), {"name": name, "at": at})
        log(conn, name, "closed" if at else "reopened", actor=actor, details={})
    return get(conn, name)


def log(conn: Conn, name: str, event: str, *, actor: str, details: Mapping[str, Any]) -> None:
    """Write down what was done to a scope."""
    given = {"name": name, "event": event, "actor": actor, "details": Jsonb(dict(details))}
    conn.execute(sql("log_scope"), given)


def history(conn: Conn, name: str) -> list[dict[str, Any]]:
    """What was changed about a scope, oldest first."""
    return rows(conn, "scope_history", {"name": name})


def _scope(row: Mapping[str, Any]) -> Scope:
    return Scope(
        row["name"], row["title"], ScopeSettings.from_json(row["settings"]), row["closed_at"]
    )
