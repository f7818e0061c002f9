"""Cutting files of named statements."""

from __future__ import annotations

import pytest

from kb_resources.errors import IntegrityError
from kb_resources.store.sql import parse_statements, sql, statements

FILE = """\
-- About the file.

-- name: first
-- What it does,
-- in two lines.
select 1
-- a comment inside
where true;

-- name: second_one
select %(x)s
"""


def test_a_statement_has_its_name_description_and_bare_text() -> None:
    first, second = parse_statements(FILE, "file.sql")
    assert (first.name, first.description) == ("first", "What it does, in two lines.")
    assert first.text == "select 1\n-- a comment inside\nwhere true"
    assert (second.name, second.description, second.text) == ("second_one", "", "select %(x)s")


@pytest.mark.parametrize("text", ["select 1", "-- about\nselect 1\n-- name: a\nselect 2"])
def test_sql_without_a_header_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError, match="without a `-- name:` header"):
        parse_statements(text, "file.sql")


@pytest.mark.parametrize(
    "text", ["-- name: a\n", "-- name: a\n-- only words\n-- name: b\nselect 1"]
)
def test_a_header_without_sql_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError, match="has no SQL"):
        parse_statements(text, "file.sql")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(IntegrityError, match="no_such_statement"):
        sql("no_such_statement")


def test_the_shipped_files_are_read_once() -> None:
    assert statements() is statements()
    assert statements()
