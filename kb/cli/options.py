"""Options shared by commands, and the time syntax."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from kb.cli.errors import EXIT_FAILURE, EXIT_INTERRUPTED
from kb.cli.output import say

F = TypeVar("F", bound=Callable[..., Any])


def scope_option(command: F) -> F:
    """`--scope`, checked by the library, so that a missing one is refused with its own error."""
    return click.option(
        "--scope", multiple=True, callback=_one, metavar="S", help="Scope to work in."
    )(command)


def _one(_ctx: click.Context, _option: click.Parameter, names: tuple[str, ...]) -> str | None:
    """The scope that was named; a second one is no correction but a question to two."""
    if len(names) > 1:
        raise click.UsageError(f"One scope at a time: {' and '.join(names)} were named.")
    return names[0] if names else None


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def audience_option(text: str) -> Callable[[F], F]:
    """`--audience`, repeatable."""

    def wrap(command: F) -> F:
        return click.option("--audience", "audiences", multiple=True, metavar="A", help=text)(
            command
        )

    return wrap


def decision_options(command: F) -> F:
    """`--reason`, which is required, and `--actor`, by default who runs the command."""
    command = click.option("--actor", default=None, help="Who decides.  [default: cli:LOGIN]")(
        command
    )
    return click.option("--reason", required=True, help="Why; kept in the document's log.")(command)


def confirm(question: str, otherwise: str) -> None:
    """Ask, and go on only after a yes; else say what did not happen (`otherwise`) and end.

    The exit code is 1 where somebody said no, and that of an interruption where nobody answered.
    """
    try:
        agreed = click.confirm(question)
    except click.Abort:
        say(f"\n{otherwise}")
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    if not agreed:
        say(otherwise)
        raise click.exceptions.Exit(EXIT_FAILURE)


def instant(value: str | None, *, end_of_day: bool) -> datetime | None:
    """An instant as people write it, or None; see `kb_resources.supersede.parse_instant`.

    Args:
        value: `2026-01-31`, `2026-01-31T12:00+02:00`, `2026-01-31[Europe/Berlin]`; else UTC.
        end_of_day: a day means its last instant (`--as-of`) or its first (`--valid-from`).

    Raises:
        InputError: it is none of these.
    """
    if value is None:
        return None
    from kb_resources.supersede import parse_instant

    return parse_instant(value, end_of_day=end_of_day)
