"""`kb ingest`: files and folders into a scope, each to exactly one end."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from kb.cli import Interrupted
from kb.cli.errors import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_REFUSED
from kb.cli.options import audience_option, instant, json_option, scope_option
from kb.cli.output import counted, dump, say, table

if TYPE_CHECKING:
    from kb.ingesting import Ingested

_STOPPED_BY_A_GATE = frozenset({"quarantined", "blocked", "language_refused"})
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_FAILED = frozenset({"failed", "corrupt", "pending"})


@click.command()
@click.argument("paths", nargs=-1, required=True)
@scope_option
@audience_option("Only holders of this name may read it; repeat for more.")
@click.option("--document-id", metavar="D", help="Id of the document (one file only).")
@click.option("--valid-from", metavar="T", help="From when it holds; default: publication.")
@click.option("--language", metavar="L", help="State the language instead of detecting it.")
@click.option("--supersedes", multiple=True, metavar="D", help="Document that ends with this one.")
@click.option("--trusted", is_flag=True, help="You vouch for it: findings are kept, nothing held.")
@click.option("--no-dagster", is_flag=True, help="Run the line directly, without recording a run.")
@json_option
def ingest(
    paths: tuple[str, ...],
    scope: str | None,
    audiences: tuple[str, ...],
    document_id: str | None,
    valid_from: str | None,
    language: str | None,
    supersedes: tuple[str, ...],
    trusted: bool,
    no_dagster: bool,
    as_json: bool,
) -> int:
    """Ingest files, folders and web pages PATHS into a scope.

    Exit code 1 if a document failed or a folder cannot be read, else 4 if a gate stopped one,
    else 0.
    """
    from kb.ingesting import Options, ingest_paths
    from kb_resources.stages.request import UNREADABLE

    if not all(path.strip() for path in paths):
        raise click.UsageError("A path is empty; is a variable not set?")
    options = Options(
        scope=scope or "",
        audiences=audiences,
        document_id=document_id,
        valid_from=instant(valid_from, end_of_day=False),
        language=language,
        supersedes=supersedes,
        trusted=trusted,
        through_dagster=not no_dagster,
    )
    left: list[tuple[Path, str]] = []
    with _stopping() as stop, _progress(hidden=as_json) as progress:
        places = [path if _ADDRESS.match(path) else Path(path) for path in paths]
        done = ingest_paths(
            places,
            options,
            should_stop=stop,
            progress=progress,
            passed_over=lambda path, why: left.append((path, why)),
        )
    print_ends(done, as_json=as_json)
    for path, why in left:
        sys.stderr.write(f"Passed over: {_shown(str(path))}, {why}.\n")
    unread = any(why == UNREADABLE for _, why in left)
    return _exit_code(done, stopped=stop()) or (EXIT_FAILURE if unread else 0)


def print_ends(done: Sequence[Ingested], *, as_json: bool = False) -> None:
    """One JSON object a line, or a table with the count of each state.

    Documents that a stop left waiting are a number in the table, and lines in JSON.
    """
    if as_json:
        for item in done:
            dump(item.to_json(), indent=None)
        return
    table(
        ["state", "version", "path", "reason"],
        [
            [i.state, i.version, _shown(i.path), i.reason or _replaced(i)]
            for i in done
            if i.reason or i.state != "pending"
        ],
    )
    waiting = sum(i.state == "pending" and not i.reason for i in done)
    if waiting:
        say(f"{counted(waiting, 'document')} not begun or not finished, left out here.")
    states = sorted({item.state for item in done})
    counts = ", ".join(f"{sum(i.state == state for i in done)} {state}" for state in states)
    say(f"{counted(len(done), 'document')}{': ' if counts else ''}{counts}")


def _replaced(item: Ingested) -> str:
    return f"took the place of version {item.replaces}" if item.replaces else ""


def _shown(path: str) -> str:
    """The path as a person would name it from here."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _exit_code(done: Sequence[Ingested], *, stopped: bool) -> int:
    if stopped:
        sys.stderr.write("Stopped. What was finished is kept; run it again to go on.\n")
        return EXIT_INTERRUPTED
    states = {item.state for item in done}
    if states & _FAILED:
        return EXIT_FAILURE
    return EXIT_REFUSED if states & _STOPPED_BY_A_GATE else 0


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C ends the work after the current document, the second at once."""
    asked = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise Interrupted
        asked = True
        sys.stderr.write("\nStopping after the current document; once more to stop at once.\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal; silence elsewhere."""
    if hidden or not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description:>10}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("ingest", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )
