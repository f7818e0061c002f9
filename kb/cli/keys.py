"""`kb keys` and `kb members`: who may come in over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from kb.cli.options import audience_option, json_option
from kb.cli.output import dump, say, table
from kb_resources.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from kb.access.secret import Secret
    from kb_resources.store.pool import Database

_DURATION = re.compile(r"(?P<number>\d{1,6})(?P<unit>[smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_ROLES = click.Choice(["viewer", "editor", "admin", "system"])


def duration(text: str) -> timedelta:
    """`90d`, `12h`, `30m` or `45s`; InputError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a duration.", next_step="Write 90d, 12h, 30m or 45s.")
    return timedelta(**{_UNITS[match["unit"]]: int(match["number"])})


@contextmanager
def _opened() -> Iterator[Database]:
    from kb_resources.compose import open_database
    from kb_resources.settings import load_settings

    with open_database(load_settings()) as database:
        yield database


def _secret() -> Secret:
    from kb.access.secret import ensure_secret, load_secret
    from kb_resources.settings import load_settings

    settings = load_settings()
    if not settings.database_url:
        return ensure_secret(settings)[0]
    found = load_secret(settings)
    if found is None:
        raise UnavailableError(
            "There is no secret to make keys with.",
            next_step="Set KB_SECRET to the server's secret.",
            code="no_secret",
        )
    return found


def _scopes(names: tuple[str, ...], every: bool) -> tuple[str, ...] | None:
    if bool(names) == every:
        raise InputError(
            "Say which scopes it opens.",
            next_step="Give --scope NAME (repeatable) or --all-scopes.",
        )
    return None if every else names


@click.group()
def keys() -> None:
    """Make, list, rotate and revoke API keys."""


@keys.command()
@click.option("--name", required=True, help="What it is for.")
@click.option("--role", type=_ROLES, default="viewer", show_default=True)
@click.option("--scope", "scopes", multiple=True, metavar="S", help="Scope it opens; repeatable.")
@click.option("--all-scopes", is_flag=True, help="It opens every scope, future ones too.")
@audience_option("Audience it holds; repeat for more.")
@click.option("--expires", metavar="D", help="Lifetime: 90d, 12h; default: none.")
@json_option
def create(
    name: str,
    role: str,
    scopes: tuple[str, ...],
    all_scopes: bool,
    audiences: tuple[str, ...],
    expires: str | None,
    as_json: bool,
) -> None:
    """Make a key; its secret is printed once."""
    from kb.access import keys as use
    from kb.ingesting import local_actor

    now = datetime.now(UTC)
    chosen = _scopes(scopes, all_scopes)
    with _opened() as database:
        made = use.create(
            database,
            _secret(),
            name=name,
            role=role,
            scopes=chosen,
            audiences=audiences,
            expires_at=now + duration(expires) if expires else None,
            by=local_actor(),
            now=now,
        )
    _show(made, as_json)


@keys.command("list")
@json_option
def list_(as_json: bool) -> None:
    """All keys, newest first, without their secrets."""
    from kb_resources.store import access

    with _opened() as database, database.transaction("app") as conn:
        rows = access.list_keys(conn, scopes=None, limit=None)
    if as_json:
        names = [n for n in access.KeyRow.__dataclass_fields__ if not n.endswith("_hash")]
        dump([{name: getattr(row, name) for name in names} for row in rows])
        return
    now = datetime.now(UTC)
    table(
        ["key", "role", "scopes", "state", "last used", "name"],
        [
            [r.key_id, r.role, _named(r.scopes), _state(r, now), _day(r.last_used_at), r.name]
            for r in rows
        ],
    )


@keys.command()
@click.argument("key_id")
@click.option("--overlap", default="24h", show_default=True, help="How long the old secret holds.")
@json_option
def rotate(key_id: str, overlap: str, as_json: bool) -> None:
    """Give a key another secret without a gap; the new one is printed once."""
    from kb.access import keys as use
    from kb.ingesting import local_actor

    with _opened() as database:
        made = use.rotate(
            database,
            _secret(),
            key_id,
            by=local_actor(),
            now=datetime.now(UTC),
            overlap=duration(overlap),
        )
    _show(made, as_json)


@keys.command()
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """End a key and its sessions at once; the last administrator stays."""
    from kb.access import keys as use
    from kb.ingesting import local_actor

    with _opened() as database:
        use.revoke(database, key_id, by=local_actor())
    say(f"{key_id} is revoked.")


@click.group()
def members() -> None:
    """People whom the identity provider signs in, and what they may do here."""


@members.command("set")
@click.argument("subject")
@click.option("--name", default="", help="For people.")
@click.option("--role", type=click.Choice(["viewer", "editor", "admin"]), required=True)
@click.option("--scope", "scopes", multiple=True, metavar="S", help="Scope; repeatable.")
@click.option("--all-scopes", is_flag=True, help="Every scope, future ones too.")
@audience_option("Audience held; repeat for more.")
def set_(
    subject: str,
    name: str,
    role: str,
    scopes: tuple[str, ...],
    all_scopes: bool,
    audiences: tuple[str, ...],
) -> None:
    """Give the person SUBJECT (the provider's `sub`) rights, or change them."""
    from kb.access import members as use
    from kb.ingesting import local_actor

    chosen = _scopes(scopes, all_scopes)
    with _opened() as database:
        use.put(
            database,
            subject,
            name=name,
            role=role,
            scopes=chosen,
            audiences=audiences,
            by=local_actor(),
        )
    say(f"{subject} is {role}.")


@members.command("list")
@json_option
def list_members(as_json: bool) -> None:
    """All members."""
    from kb.access import members as use

    with _opened() as database:
        rows = use.list_all(database, None)
    if as_json:
        dump([{n: getattr(row, n) for n in row.__dataclass_fields__} for row in rows])
        return
    table(
        ["subject", "role", "scopes", "removed", "name"],
        [[r.subject, r.role, _named(r.scopes), _day(r.removed_at), r.name] for r in rows],
    )


@members.command()
@click.argument("subject")
def remove(subject: str) -> None:
    """End a person's access and sessions at once; the last administrator stays."""
    from kb.access import members as use
    from kb.ingesting import local_actor

    with _opened() as database:
        use.remove(database, subject, by=local_actor())
    say(f"{subject} has no access any more.")


def _show(made: Any, as_json: bool) -> None:
    if as_json:
        dump({"key_id": made.key_id, "key": made.token, "previous_until": made.previous_until})
        return
    say(f"Key {made.key_id}, shown this once: {made.token}")
    if made.previous_until is not None:
        say(f"The old secret holds until {made.previous_until:%Y-%m-%d %H:%M} UTC.")


def _named(scopes: list[str] | None) -> str:
    return "all" if scopes is None else ", ".join(scopes)


def _state(row: Any, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is None:
        return "active"
    return f"until {_day(row.expires_at)}" if row.expires_at > now else "expired"


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"
