"""Printing: JSON for programs, plain text and tables for people."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any


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
    """A table for people; the last column takes what room is left and folds."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, header in enumerate(headers):
        made.add_column(header, overflow="fold", ratio=1 if index == len(headers) - 1 else None)
    for row in rows:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    Console(file=sys.stdout, width=width(), highlight=False).print(made)
