"""Reading migration files and cutting SQL into statements."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.errors import IntegrityError
from kb_resources.store.migration_files import load_migrations, split_statements

_PIECES = st.sampled_from(
    [
        "select 1",
        "select ';'",
        "select 'it''s; quoted'",
        r"select E'\';\\'",
        'select ";" from "a""b;c"',
        "do $$ begin perform 1; end $$",
        "do $fn$ select $$;$$; $fn$",
        "select 1 /* ; /* nested; */ ' */ + 1",
        "select 1 -- ; it's\n + 1",
        "select a.$1 from b",
    ]
)
_BETWEEN = st.sampled_from(["", "\n", " \n-- a comment; with a semicolon\n", "/* ; */", "\n;\n"])


@given(st.lists(st.tuples(_PIECES, _BETWEEN), max_size=6))
def test_statements_are_cut_where_postgres_ends_them(parts: list[tuple[str, str]]) -> None:
    text = "".join(f"{between}{piece};" for piece, between in parts)
    found = split_statements(text)
    assert len(found) == len(parts)
    assert all(
        statement.endswith(piece) for statement, (piece, _) in zip(found, parts, strict=True)
    )


@pytest.mark.parametrize("text", ["", " ;; ", "-- only; this\n", "/* ; */ ;", "/* never closed ;"])
def test_text_without_sql_has_no_statements(text: str) -> None:
    assert split_statements(text) == []


def test_the_last_statement_needs_no_semicolon() -> None:
    assert split_statements("select 1;\nselect 2 -- end") == ["select 1", "select 2 -- end"]


@pytest.mark.parametrize("name", ["1_short.sql", "0001-dash.sql", "0001_Upper.sql", "zero.sql"])
def test_a_name_that_does_not_fit_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("select 1")
    with pytest.raises(IntegrityError, match="not a migration's name"):
        load_migrations(tmp_path)


def test_a_number_used_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").write_text("select 1")
    (tmp_path / "0001_b.sql").write_text("select 2")
    with pytest.raises(IntegrityError, match="share a number"):
        load_migrations(tmp_path)


def test_migrations_come_by_number(tmp_path: Path) -> None:
    for name in ("0010_ten", "0002_two", "0009_nine"):
        (tmp_path / f"{name}.sql").write_text("select 1")
    assert [migration.number for migration in load_migrations(tmp_path)] == [2, 9, 10]
