"""`kb watch`: addresses whose pages are looked at again and again.

Belongs here: arguments and presentation. What does not: the use cases (`stages.watch`,
`stages.watch_check`). The sensor `watched_urls` looks by itself; `kb watch check` does it now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from kb.cli.errors import EXIT_FAILURE
from kb.cli.options import audience_option, json_option, scope_option
from kb.cli.output import dump, say, table
from kb_resources.errors import InputError
from kb_resources.model import validate_scope

if TYPE_CHECKING:
    from kb_resources.settings import Settings
    from kb_resources.store.pool import Database
    from kb_resources.store.watches import WatchRow

_UNWELL = ("failing", "refused", "missing", "removed")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_DURATION = re.compile(r"(\d{1,6})([smhdw])")


def seconds(text: str) -> int:
    """Seconds of a duration such as 90s, 15m, 6h, 1d or 2w; InputError for anything else."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(f"{text!r} is not a duration.", next_step="Write 15m, 6h or 1d.")
    return int(match[1]) * _UNITS[match[2]]


def in_words(duration_s: int) -> str:
    """The shortest form that `seconds` reads back."""
    unit = next(u for u, size in reversed(_UNITS.items()) if duration_s % size == 0)
    return f"{duration_s // _UNITS[unit]}{unit}"


@contextmanager
def _database() -> Iterator[tuple[Database, Settings]]:
    from kb_resources.compose import open_database
    from kb_resources.settings import load_settings

    settings = load_settings()
    with open_database(settings) as database:
        yield database, settings


@click.group()
def watch() -> None:
    """Watch web pages, sitemaps and feeds; changed pages become new versions."""


@watch.command()
@click.argument("url")
@scope_option
@audience_option("Only holders of this name may read it; repeat for more.")
@click.option("--every", default="6h", show_default=True, help="Time between two looks: 15m, 6h…")
@click.option(
    "--on-missing",
    type=click.Choice(["keep", "remove"]),
    default="keep",
    show_default=True,
    help="What becomes of a page that answers 404 or 410.",
)
@click.option("--after", default=3, show_default=True, help="Looks in a row that must miss it.")
@click.option(
    "--expand",
    type=click.Choice(["none", "sitemap", "feed"]),
    default="none",
    show_default=True,
    help="Whether URL names a page, or a sitemap or RSS/Atom feed of pages.",
)
@click.option("--limit", default=1000, show_default=True, help="Pages at most (with --expand).")
@click.option("--language", metavar="L", help="State the language instead of detecting it.")
@json_option
def add(
    url: str,
    scope: str | None,
    audiences: tuple[str, ...],
    every: str,
    on_missing: str,
    after: int,
    expand: str,
    limit: int,
    language: str | None,
    as_json: bool,
) -> None:
    """Watch URL from now on."""
    from kb.ingesting import local_actor
    from kb_resources.compose import fetch_policy
    from kb_resources.stages import watch as watching

    request = watching.WatchRequest(
        scope=validate_scope(scope),
        url=url,
        audiences=audiences,
        every_s=seconds(every),
        on_missing=on_missing,
        remove_after=after,
        expand=expand,
        limit=limit,
        language=language,
        actor=local_actor(),
    )
    with _database() as (database, settings):
        row = watching.add(
            database,
            request,
            policy=fetch_policy(settings),
            languages=settings.languages,
            now=datetime.now(UTC),
        )
    _tell(row, "Watched", as_json=as_json)


@watch.command("list")
@scope_option
@json_option
def list_(scope: str | None, as_json: bool) -> None:
    """Watches of a scope and how their pages stand."""
    from kb_resources.stages import watch as watching

    with _database() as (database, _):
        rows = watching.list_(database, validate_scope(scope))
    if as_json:
        dump([asdict(row) for row in rows])
        return
    table(
        ["watch", "state", "every", "pages", "next look", "address", "reason"],
        [
            [
                row.watch_id,
                row.state,
                in_words(row.every_s),
                ", ".join(f"{n} {state}" for state, n in sorted(row.states.items())) or "-",
                f"{row.next_check_at:%Y-%m-%d %H:%M}" if row.next_check_at else "",
                row.url,
                row.reason,
            ]
            for row in rows
        ],
    )


@watch.command()
@click.argument("watch_id")
@scope_option
@json_option
def show(watch_id: str, scope: str | None, as_json: bool) -> None:
    """The pages of a watch."""
    from kb_resources.stages import watch as watching

    with _database() as (database, _):
        row, pages = watching.show(database, watch_id, validate_scope(scope))
    if as_json:
        dump(asdict(row) | {"watched_pages": pages})
        return
    say(f"{row.url}  ({row.state}, every {in_words(row.every_s)}, {row.expand})")
    table(
        ["state", "looked at", "changed", "document", "address", "reason"],
        [
            [
                page["state"],
                f"{page['checked_at']:%Y-%m-%d %H:%M}" if page["checked_at"] else "",
                f"{page['changed_at']:%Y-%m-%d %H:%M}" if page["changed_at"] else "",
                page["document_id"],
                page["url"],
                page["reason"],
            ]
            for page in pages
        ],
    )


@watch.command()
@click.argument("watch_id")
@scope_option
@json_option
def pause(watch_id: str, scope: str | None, as_json: bool) -> None:
    """Look at its pages no more until it is resumed."""
    _change("pause", "Paused", watch_id, scope, as_json=as_json)


@watch.command()
@click.argument("watch_id")
@scope_option
@json_option
def resume(watch_id: str, scope: str | None, as_json: bool) -> None:
    """Look at its pages again."""
    _change("resume", "Watched again", watch_id, scope, as_json=as_json)


@watch.command()
@click.argument("watch_id")
@scope_option
@json_option
def remove(watch_id: str, scope: str | None, as_json: bool) -> None:
    """Forget a watch; its documents stay until they are removed."""
    _change("remove", "No longer watched", watch_id, scope, as_json=as_json)


@watch.command()
@click.argument("watch_ids", nargs=-1, metavar="[WATCH_ID]...")
@scope_option
@click.option("--due", is_flag=True, help="Only pages whose time has come.")
@click.option("--no-dagster", is_flag=True, help="Run the line directly, without recording a run.")
@json_option
def check(
    watch_ids: tuple[str, ...], scope: str | None, due: bool, no_dagster: bool, as_json: bool
) -> int:
    """Look at pages now, and take those that changed through the line."""
    from kb.ingesting import local_actor
    from kb.running import run_keys
    from kb_resources.compose import open_line
    from kb_resources.settings import load_settings
    from kb_resources.stages import watch as watching
    from kb_resources.stages.watch_check import CheckOptions, check_now

    settings, actor = load_settings(), local_actor()
    name = validate_scope(scope)
    with open_line(settings, actor=actor) as line:
        database = line.capabilities.database
        known = [row.watch_id for row in watching.list_(database, name)]
        for watch_id in watch_ids:
            watching.show(database, watch_id, name, limit=1)
        report = check_now(
            line,
            list(watch_ids) or known,
            CheckOptions(delay_s=settings.fetch_delay_s, seconds=3600.0),
            hurry=not due,
        )
        keys = list(report.keys)
        run_keys(line, keys, settings, actor=actor, through_dagster=not no_dagster)
        rows = line.rows(keys)
        unwell = [
            {"state": page["state"], "url": page["url"], "reason": page["reason"]}
            for watch_id in watch_ids or known
            for page in watching.show(database, watch_id, name)[1]
            if page["state"] in _UNWELL
        ]
    ends = [
        {
            "document_id": row.document_id,
            "url": row.origin,
            "state": row.state,
            "reason": row.reason,
        }
        for row in rows
    ]
    if as_json:
        counts = {"counts": dict(report.counts), "left": report.left}
        dump(counts | {"documents": ends, "unwell": unwell})
    elif not known:
        say(f"{name} has no watch; kb watch add makes one.")
    else:
        say(f"{report}.")
        ends += unwell
        if ends:
            table(
                ["state", "address", "reason"], [[e["state"], e["url"], e["reason"]] for e in ends]
            )
    return EXIT_FAILURE if report.counts["failing"] or report.counts["refused"] else 0


def _change(verb: str, said: str, watch_id: str, scope: str | None, *, as_json: bool) -> None:
    from kb_resources.stages import watch as watching

    with _database() as (database, _):
        row = getattr(watching, verb)(database, watch_id, validate_scope(scope))
    _tell(row, said, as_json=as_json)


def _tell(row: WatchRow, said: str, *, as_json: bool) -> None:
    found: dict[str, Any] = asdict(row)
    if as_json:
        dump(found)
    else:
        say(f"{said}: {row.url}  (watch {row.watch_id}, every {in_words(row.every_s)})")
