"""The sources of the generated examples: a small part of Markdown, with `name: value` lines on top.

Belongs here: reading it. Not here: writing files. Tables, headings, lists and paragraphs look as
in CommonMark, https://spec.commonmark.org/; a paragraph is one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIELD = re.compile(r"([a-z]+): (.+)")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 3."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a bullet list."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equal length; the first holds the column names."""

    rows: tuple[tuple[str, ...], ...]


Part = Heading | Paragraph | Entry | Table


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed source file.

    Attributes:
        fields: what stands on top (`title`, `running`, `from`, …).
        parts: the rest in order.
        text: the rest as it stands in the file.
    """

    fields: dict[str, str]
    parts: tuple[Part, ...]
    text: str

    @property
    def title(self) -> str:
        """The field of that name, else the first heading, else empty."""
        first = next((part.text for part in self.parts if isinstance(part, Heading)), "")
        return self.fields.get("title", first)


def read(text: str) -> Source:
    """Parse a source file."""
    lines = text.splitlines()
    fields: dict[str, str] = {}
    while lines and (match := _FIELD.fullmatch(lines[0])):
        fields[match[1]] = match[2]
        del lines[0]
    body = "\n".join(lines).strip() + "\n"
    return Source(fields, tuple(_parts(body.splitlines())), body)


def _parts(lines: list[str]) -> Iterator[Part]:
    rows: list[tuple[str, ...]] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
            if not all(set(cell) == {"-"} for cell in cells):
                rows.append(cells)
            continue
        if rows:
            yield Table(tuple(rows))
            rows = []
        if line.startswith("#"):
            marks, _, text = line.partition(" ")
            yield Heading(len(marks), text)
        elif line.startswith("- "):
            yield Entry(line[2:])
        elif line:
            yield Paragraph(line)
