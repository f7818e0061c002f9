"""Migration files: names, checksums, statements.

Belongs here: reading and cutting them. What does not: a database (`migrate`).
Lexical rules: https://www.postgresql.org/docs/current/sql-syntax-lexical.html.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from kb_resources.errors import IntegrityError
from kb_resources.model.ids import sha256_hex

MIGRATIONS = Path(__file__).parent / "migrations"
_NAME = re.compile(r"(?P<number>\d{4})_[a-z0-9_]+")
_NO_TRANSACTION = "-- no-transaction"

_TOKEN = re.compile(
    r"""
    --[^\n]*                                     # comment to the end of the line
    | \$(?P<tag>\w*)\$ .*? \$(?P=tag)\$          # dollar-quoted text
    | \b[eE]'(?:[^'\\]|\\.|'')*'                 # text with escapes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?P<comment>/\*)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file.

    Attributes:
        number: from its name; unique, from 1.
        label: its name without `.sql`.
        text: its SQL, with LF line ends.
        checksum: SHA-256 hex of `text` in UTF-8.
    """

    number: int
    label: str
    text: str = field(repr=False)
    checksum: str

    @property
    def transactional(self) -> bool:
        """Whether the file runs in one transaction."""
        return not self.text.startswith(_NO_TRANSACTION)


def load_migrations(folder: Path = MIGRATIONS) -> tuple[Migration, ...]:
    """All migrations of a folder by number.

    Raises:
        IntegrityError: a name does not fit or a number stands twice.
    """
    found: dict[int, Migration] = {}
    for file in sorted(folder.glob("*.sql")):
        match = _NAME.fullmatch(file.stem)
        if match is None:
            raise IntegrityError(
                f"{file.name} is not a migration's name.", next_step="Use 0001_what_it_does.sql."
            )
        text = file.read_bytes().decode("utf-8").replace("\r\n", "\n")
        migration = Migration(int(match["number"]), file.stem, text, sha256_hex(text.encode()))
        if migration.number in found:
            raise IntegrityError(
                f"{found[migration.number].label} and {file.stem} share a number.",
                next_step="Renumber the newer one.",
            )
        found[migration.number] = migration
    return tuple(found[number] for number in sorted(found))


def split_statements(text: str) -> list[str]:
    """Cut SQL at the semicolons that end a statement; parts without SQL are left out."""
    parts = []
    start = position = 0
    while (match := _TOKEN.search(text, position)) is not None:
        position = match.end()
        if match["comment"]:
            position = _comment_end(text, position)
        elif match["end"]:
            parts.append(text[start : match.start()].strip())
            start = position
    parts.append(text[start:].strip())
    return [part for part in parts if _has_sql(part)]


def _comment_end(text: str, position: int) -> int:
    depth = 1
    while depth and (mark := _COMMENT_MARK.search(text, position)) is not None:
        depth += 1 if mark.group() == "/*" else -1
        position = mark.end()
    return position if depth == 0 else len(text)


def _has_sql(part: str) -> bool:
    position = 0
    while position < len(part):
        match = _TOKEN.match(part, position)
        if match is not None and match["comment"]:
            position = _comment_end(part, match.end())
        elif match is not None and match.group().startswith("--"):
            position = match.end()
        elif part[position].isspace():
            position += 1
        else:
            return True
    return False
