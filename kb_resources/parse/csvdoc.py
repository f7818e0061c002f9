"""Delimited text: one table, delimiter and encoding found out.

Belongs here: text/csv and tab-separated values. Spreadsheets are `xlsx.py`'s. Quoting follows
RFC 4180, whose header line is optional, so the header is guessed.
"""

from __future__ import annotations

import csv
import io
import re

from kb_resources.model import Coverage, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.encoding import decode
from kb_resources.parse.reading import Reading
from kb_resources.parse.tables import table_drafts
from kb_resources.parse.text import uncertain, undecodable

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_NUMBER = re.compile(r"[-+]?[\d.,\s%€$£]+")


def read_csv(data: bytes, name: str) -> Reading | Refusal:
    """Read delimited text.

    Returns:
        Reading with the table cut into blocks of bounded size, header repeated, each with its
        lines as locator; or a Refusal (`unsupported`) for an unknown encoding.
    """
    decoded = decode(data)
    if decoded is None:
        return undecodable(name)
    text = decoded.text.replace("\x00", "")
    csv.field_size_limit(2**27)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text))
    rows = [row for row in reader if any(cell.strip() for cell in row)]
    title, rows = _leading_title(rows)
    drafts = [DraftBlock("paragraph", title)] if title else []
    header = 1 if _has_header(rows) else 0
    drafts += table_drafts(rows, header, lambda first, last: f"Rows {first} to {last}")
    warnings = () if decoded.certain else (uncertain(decoded.encoding),)
    return Reading(tuple(drafts), "csv", title=title, coverage=Coverage(warnings=warnings))


def delimiter_of(text: str) -> str:
    """The delimiter that cuts the first lines into the steadiest number of fields."""
    lines = [line for line in text.splitlines()[:_SAMPLE_LINES] if line.strip()]
    best = (0.0, ",")
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        common = max(set(widths), key=widths.count, default=1)
        if common > 1:
            best = max(best, (widths.count(common) / len(widths) + common / 1000, delimiter))
    return best[1]


def _leading_title(rows: list[list[str]]) -> tuple[str, list[list[str]]]:
    """A first row of one filled cell over a wider table is its title."""
    if len(rows) > 2:
        filled = [cell for cell in rows[0] if cell.strip()]
        if len(filled) == 1 and len([c for c in rows[1] if c.strip()]) > 1:
            return filled[0], rows[1:]
    return "", rows


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first row is text where a later one has numbers, or all its cells differ."""
    if len(rows) < 2:
        return False
    first = [cell.strip() for cell in rows[0]]
    if any(not cell or _NUMBER.fullmatch(cell) for cell in first):
        return False
    return len(set(first)) == len(first)
