"""`kb scopes`: make scopes, look at them, change what holds in them, close them.

Belongs here: arguments and presentation. What does not: what settings mean (`store.scopes`), the
use cases (`stages.scopes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kb.cli.options import json_option
from kb.cli.output import dump, say, table

if TYPE_CHECKING:
    from kb_resources.settings import Settings
    from kb_resources.stages.scopes import ScopeOverview
    from kb_resources.store.pool import Database
    from kb_resources.store.scopes import Scope, ScopeSettings

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def scopes() -> None:
    """Create scopes, list and configure them, change titles, close them."""


@contextmanager
def _opened(actor: str | None) -> Iterator[tuple[Database, Settings, str]]:
    from kb.ingesting import local_actor
    from kb_resources.compose import open_database
    from kb_resources.settings import load_settings

    settings = load_settings()
    with open_database(settings) as database:
        yield database, settings, actor or local_actor()


def _actor_option(command: F) -> F:
    return click.option("--actor", default=None, help="Who decides.  [default: cli:LOGIN]")(command)


def _setting_options(command: F) -> F:
    """One option for each setting of a scope."""
    for option in reversed(
        (
            click.option("--language", "languages", multiple=True, metavar="L",
                         help="Language it accepts, instead of those so far; repeat for more."),
            click.option("--audience", "audiences", multiple=True, metavar="A",
                         help="Who may read documents whose source says nothing; repeat for more."),
            click.option("--everyone", is_flag=True, help="Such documents are open to the scope."),
            click.option("--model", default=None, metavar="NAME",
                         help="Embedding model it must be worked with; empty: any."),
            click.option("--chunk-preset", default=None,
                         type=click.Choice(["hierarchical", "flat", "sentence", ""]),
                         help="How documents are cut; empty: the installation's way."),
            click.option("--chunk-tokens", default=None, type=int, metavar="N",
                         help="Passage limit in tokens; 0: the installation's."),
            click.option("--retention-days", default=None, type=int, metavar="N",
                         help="Days until `kb scopes expire` takes a document; 0: never."),
            click.option("--opaque-ids/--readable-ids", "opaque_ids", default=None,
                         help="Whether derived document ids leave names out."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that were named."""
    everyone = given.pop("everyone")
    if everyone and given["audiences"]:
        raise click.UsageError("Give --audience or --everyone, not both.")
    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    return chosen | ({"audiences": ()} if everyone else {})


@scopes.command()
@click.argument("name")
@click.option("--title", default=None, help="Title for people.")
@_setting_options
@_actor_option
@json_option
def create(name: str, title: str | None, actor: str | None, as_json: bool, **given: Any) -> None:
    """Make a scope. Its name is part of every key and never changes."""
    from kb_resources.stages import scopes as stage
    from kb_resources.store.scopes import ScopeSettings

    wanted = ScopeSettings(**_changes(given))
    with _opened(actor) as (database, settings, who):
        made = stage.create(
            database, name, title=title, settings=wanted, languages=settings.languages,
            model=settings.model, actor=who,
        )  # fmt: skip
    _tell(made, as_json, "created")


@scopes.command("list")
@json_option
def list_(as_json: bool) -> None:
    """All scopes with their documents and passages."""
    from kb_resources.stages import scopes as stage

    with _opened(None) as (database, _, _):
        found = stage.overviews(database, datetime.now(UTC))
    if as_json:
        dump([_json(each) for each in found])
        return
    table(
        ["scope", "documents", "passages", "closed", "title"],
        [
            [
                each.scope.name,
                each.documents,
                each.passages,
                f"{each.scope.closed_at:%Y-%m-%d}" if each.scope.closed_at else "",
                each.scope.title,
            ]
            for each in found
        ],
    )


@scopes.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """One scope: settings, numbers, what was changed about it."""
    from kb_resources.stages import scopes as stage

    with _opened(None) as (database, _, _):
        found = stage.overview(database, name, datetime.now(UTC))
    if as_json:
        dump(_json(found) | {"history": [dict(entry) for entry in found.history]})
        return
    scope = found.scope
    say(f"{'scope':16} {scope.name}")
    say(f"{'title':16} {scope.title or ''}")
    say(f"{'documents':16} {found.documents}")
    say(f"{'passages':16} {found.passages}")
    say(f"{'closed':16} {scope.closed_at or 'no'}")
    for item in fields(scope.settings):
        value = getattr(scope.settings, item.name)
        shown = ", ".join(value) if isinstance(value, tuple) else value
        say(f"{item.name:16} {'' if value == item.default else shown}".rstrip())
    say()
    table(
        ["at", "event", "actor", "details"],
        [
            [f"{e['at']:%Y-%m-%d %H:%M:%S}", e["event"], e["actor"], e["details"] or ""]
            for e in found.history
        ],
    )


@scopes.command("set")
@click.argument("name")
@_setting_options
@_actor_option
@json_option
def set_(name: str, actor: str | None, as_json: bool, **given: Any) -> None:
    """Change settings; what each was is told. They hold for documents from their next run on."""
    from kb_resources.stages import scopes as stage

    changes = _changes(given)
    if not changes:
        raise click.UsageError("Name at least one setting to change.")
    with _opened(actor) as (database, settings, who):
        made = stage.configure(database, name, changes, model=settings.model, actor=who)
    if as_json:
        dump(_scope_json(made.scope) | {"before": made.before.to_json()})
        return
    for setting in (item.name for item in fields(made.before) if item.name in changes):
        old, new = (_value(each, setting) for each in (made.before, made.scope.settings))
        told = f"{new}, as before" if old == new else f"{old} → {new}"
        say(f"{name}: {setting} {told}")


@scopes.command()
@click.argument("name")
@click.option("--title", default=None, help="The new title; without it there is none.")
@_actor_option
@json_option
def rename(name: str, title: str | None, actor: str | None, as_json: bool) -> None:
    """Change the title."""
    from kb_resources.stages import scopes as stage

    with _opened(actor) as (database, _, who):
        made = stage.rename(database, name, title, actor=who)
    _tell(made, as_json, f"titled {made.title}" if made.title else "without a title")


@scopes.command()
@click.argument("name")
@click.option("--anyway", is_flag=True, help="Also while uploads wait for it; they fail then.")
@_actor_option
@json_option
def close(name: str, anyway: bool, actor: str | None, as_json: bool) -> None:
    """Take no more documents. What is there stays readable."""
    from kb_resources.stages import scopes as stage

    with _opened(actor) as (database, _, who):
        made = stage.close(database, name, datetime.now(UTC), actor=who, anyway=anyway)
    _tell(made, as_json, "closed")


@scopes.command()
@click.argument("name")
@_actor_option
@json_option
def reopen(name: str, actor: str | None, as_json: bool) -> None:
    """Take documents again."""
    from kb_resources.stages import scopes as stage

    with _opened(actor) as (database, _, who):
        made = stage.reopen(database, name, actor=who)
    _tell(made, as_json, "open")


@scopes.command()
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Only say which documents it would be.")
@_actor_option
@json_option
def expire(name: str, dry_run: bool, actor: str | None, as_json: bool) -> None:
    """Remove documents that outlived the scope's retention; each can be restored."""
    from kb.cli.lifecycle import deciding
    from kb.running import commit_batch
    from kb_resources.model import DocumentKey
    from kb_resources.settings import load_settings
    from kb_resources.stages import scopes as stage

    if dry_run:
        with _opened(actor) as (database, _, _):
            found = stage.Expired(tuple(stage.outlived(database, name, datetime.now(UTC))))
    else:
        with deciding(actor) as (line, who):
            found = stage.expire(line.capabilities, name, actor=who)
            line.run_all(found.woken)
            keys = [DocumentKey(name, document_id) for document_id in found.documents]
            commit_batch(load_settings(), line.capabilities, [*keys, *found.woken])
    woken = [key.document_id for key in found.woken]
    if as_json:
        said = {"scope": name, "removed": not dry_run, "documents": list(found.documents)}
        dump(said | ({} if dry_run else {"woken": woken}))
        return
    for document_id in found.documents:
        say(document_id)
    say(f"{len(found.documents)} {'would be removed' if dry_run else 'removed'}")
    for document_id in woken:
        say(f"  {document_id}, which has the same bytes, is published on its own now")


def _json(found: ScopeOverview) -> dict[str, Any]:
    counted = {"documents": found.documents, "passages": found.passages}
    return _scope_json(found.scope) | counted


def _scope_json(scope: Scope) -> dict[str, Any]:
    return {
        "name": scope.name,
        "title": scope.title,
        "closed_at": scope.closed_at,
        "settings": scope.settings.to_json(),
    }


def _value(settings: ScopeSettings, name: str) -> str:
    """A setting for people."""
    value = getattr(settings, name)
    if isinstance(value, tuple):
        return ", ".join(value) or "not set"
    return str(value) if value or isinstance(value, bool) else "not set"


def _tell(scope: Scope, as_json: bool, text: str) -> None:
    if as_json:
        dump(_scope_json(scope))
    else:
        say(f"{scope.name}: {text}")
