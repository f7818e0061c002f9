"""Write docs/reference from the code: settings, commands, errors, tables.

Usage: python tools/reference.py [--check]   (--check: exit 1 where a file is out of date)
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click

from kb.cli.group import cli
from kb_resources import errors
from kb_resources.settings import described

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def settings_page() -> str:
    """Every variable with default and meaning."""
    rows = [
        f"| `{name}` | {f'`{default}`' if default else ''} | {text} |"
        for name, default, text in described()
    ]
    return "\n".join(
        ["# Settings", "", "| variable | default | meaning |", "|---|---|---|", *rows, ""]
    )


def commands_page() -> str:
    """Every command's own help."""
    parts = ["# Commands", "", inspect.cleandoc(cli.help or ""), ""]
    root = click.Context(cli, info_name="kb")

    def add(command: click.Command, context: click.Context) -> None:
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None:
                    add(child, click.Context(child, info_name=name, parent=context))
            return
        parts.extend([f"## {context.command_path}", "", "```text"])
        parts.extend([command.get_help(context), "```", ""])

    add(cli, root)
    return "\n".join(parts)


def errors_page() -> str:
    """The error tree with codes."""
    rows = [
        f"| `{kind.code}` | {kind.__name__} | {'yes' if kind.retryable else 'no'} | "
        f"{inspect.cleandoc(kind.__doc__ or '').splitlines()[0]} |"
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.KbError)
    ]
    head = ["# Errors", "", "| code | class | a retry may help | meaning |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


PAGES = {"settings.md": settings_page, "commands.md": commands_page, "errors.md": errors_page}


def stale(folder: Path = FOLDER) -> list[str]:
    """Names of pages that differ from what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (folder / name).is_file() or (folder / name).read_text("utf-8") != page()
    ]


def main() -> int:
    """Write the pages, or check them."""
    if "--check" in sys.argv:
        for name in stale():
            sys.stderr.write(f"docs/reference/{name} is out of date; run make reference.\n")
        return bool(stale())
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
