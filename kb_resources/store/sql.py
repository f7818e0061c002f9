"""Named SQL statements from the `.sql` files beside this module.

Belongs here: finding and caching them, rows by name. What does not: SQL itself, and anything that
builds SQL from strings; parameters are bound by psycopg as `%(name)s`. The header format is that of
https://github.com/nackjicholson/aiosql: `-- name: put_version`, then what it does as comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import dict_row

from kb_resources.errors import IntegrityError

_HEADER = re.compile(r"^-- name:[ \t]*(?P<name>[a-z][a-z0-9_]*)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement.

    Attributes:
        name: unique over all files.
        description: the comment lines under the header, one space between them; may be empty.
        text: the SQL without header, description and closing semicolon.
        file: name of the file it stands in.
    """

    name: str
    description: str
    text: LiteralString
    file: str


def sql(name: str) -> LiteralString:
    """Text of a named statement.

    Raises:
        IntegrityError: no file holds it, so the installation is not whole.
    """
    try:
        return statements()[name].text
    except KeyError:
        raise IntegrityError(
            f"No SQL statement is named {name!r}.", next_step="Install the package again."
        ) from None


def rows(
    conn: Connection[Any], name: str, given: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """All rows of a named statement, by column."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(sql(name), given).fetchall()


@cache
def statements() -> Mapping[str, Statement]:
    """All named statements by name, read once.

    Raises:
        IntegrityError: a name stands twice, or text stands before the first header.
    """
    found: dict[str, Statement] = {}
    folder = resources.files("kb_resources.store") / "queries"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not file.name.endswith(".sql"):
            continue
        for statement in parse_statements(file.read_text("utf-8"), file.name):
            if statement.name in found:
                raise IntegrityError(
                    f"{statement.name!r} stands in {found[statement.name].file} and {file.name}.",
                    next_step="Rename one of the statements.",
                )
            found[statement.name] = statement
    return found


def parse_statements(text: str, file: str) -> list[Statement]:
    """Cut one file's text at its headers; comments before the first header belong to the file.

    Raises:
        IntegrityError: SQL stands before the first header, or a header has no SQL.
    """
    headers = list(_HEADER.finditer(text))
    preamble = text[: headers[0].start()] if headers else text
    if _after_comments(preamble)[1]:
        raise IntegrityError(f"{file} has SQL without a `-- name:` header.")
    ends = [header.start() for header in headers[1:]] + [len(text)]
    result = []
    for header, end in zip(headers, ends, strict=True):
        description, body = _after_comments(text[header.end() : end])
        if not body:
            raise IntegrityError(f"{header['name']!r} in {file} has no SQL.")
        result.append(Statement(header["name"], description, body, file))
    return result


def _after_comments(text: str) -> tuple[str, str]:
    """Leading comment lines, joined, and what follows them without a closing semicolon."""
    lines = text.strip().splitlines()
    count = 0
    while count < len(lines) and lines[count].startswith("--"):
        count += 1
    description = " ".join(line.removeprefix("--").strip() for line in lines[:count])
    return description, "\n".join(lines[count:]).strip().removesuffix(";").rstrip()
