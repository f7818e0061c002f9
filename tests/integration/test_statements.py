"""The shipped named statements fit the migrated schema."""

from __future__ import annotations

import re

import psycopg
import pytest

from kb_resources.store.pool import Database
from kb_resources.store.sql import Statement, sql, statements

_PARAMETER = re.compile(r"%\((\w+)\)[sbt]")


def numbered(text: str) -> bytes:
    """The statement with `$1` for each named parameter, as psycopg sends it."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    return _PARAMETER.sub(number, text).replace("%%", "%").encode()


@pytest.mark.parametrize("statement", statements().values(), ids=lambda found: found.name)
def test_postgres_understands_the_statement(
    shared_database: Database, statement: Statement
) -> None:
    with shared_database.owner_session() as conn:
        result = conn.pgconn.prepare(b"", numbered(statement.text))
    message = result.error_message.decode()
    # psycopg sends types with most parameters; here they are unknown, which may be too little.
    assert not message or "could not determine" in message, message


def test_an_unknown_table_would_be_found(shared_database: Database) -> None:
    with shared_database.owner_session() as conn:
        result = conn.pgconn.prepare(b"", numbered("select * from nowhere where x = %(x)s"))
    assert b"does not exist" in result.error_message


def test_a_statement_runs_by_its_name(shared_database: Database) -> None:
    with shared_database.transaction("pipeline", "acme") as conn:
        assert isinstance(conn, psycopg.Connection)
        conn.execute(sql("list_scopes"))
