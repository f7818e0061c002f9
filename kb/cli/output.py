"""Printing: JSON for programs, plain text and tables for people."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

_LONGEST = 100
"""The longest id; a longer word may be folded."""
_SHORT = 12
"""Of other words so much stays together where there is no room."""
_GAP = 3
"""Columns of the terminal between two of a table."""


def _default(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def dump(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=indent, default=_default) + "\n")


def say(text: str = "") -> None:
    """One line on stdout."""
    sys.stdout.write(text + "\n")


def counted(number: int, what: str) -> str:
    """A number of things, in words: `1 passage`, `2 passages`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def width() -> int:
    """Columns to fill."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 160))


def paragraph(text: str, indent: str = "   ") -> str:
    """Text folded to the terminal; line breaks of the source are kept."""
    lines = []
    for line in text.splitlines() or [""]:
        lines += textwrap.wrap(line, width() - len(indent)) or [""]
    return "\n".join(indent + line for line in lines)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people; ids are never folded, so that they can be copied at any width.

    Where the ids alone are wider than the terminal, so is the table.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [["" if cell is None else str(cell) for cell in row] for row in rows]
    columns = [list(column) for column in zip(headers, *shown, strict=True)]
    room = width() - _GAP * (len(columns) - 1)
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="")
    widths = _widths(columns, room)
    for header, taken in zip(headers, widths, strict=True):
        made.add_column(header, overflow="fold", width=taken)
    for row in shown:
        made.add_row(*map(Text, row))
    whole = sum(widths) + _GAP * (len(columns) - 1)
    console = Console(file=sys.stdout, width=whole, highlight=False)
    with console.capture() as drawn:
        console.print(made)
    for line in drawn.get().splitlines():
        say(line.rstrip())


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """How wide each column of a table is: never less than its ids, then its words, then its lines.

    Where not all of them fit, the columns that lack least are filled first.
    """
    from rich.cells import cell_len

    def widest(parts: Callable[[str], Iterable[str]]) -> list[int]:
        return [max((cell_len(part) for cell in each for part in parts(cell)), default=0)
                for each in columns]  # fmt: skip

    widths = widest(lambda cell: (_kept(word, cell) for word in cell.split()))
    left = max(0, room - sum(widths))
    for wanted in (widest(str.split), widest(str.splitlines)):
        lacking = sorted(range(len(columns)), key=lambda at: wanted[at] - widths[at])
        for done, at in enumerate(lacking):
            more = max(0, min(wanted[at] - widths[at], left // (len(lacking) - done)))
            widths[at] += more
            left -= more
    return widths


def _kept(word: str, cell: str) -> str:
    """What of a word is never folded: of an id, which is a cell's only word or has a digit, all."""
    is_id = word == cell.strip() or any(map(str.isdigit, word))
    return word[: _LONGEST if is_id else _SHORT]
