"""Brings a database's schema up to date with numbered SQL files.

Files are `migrations/NNNN_name.sql`, each applied once, in order, in one transaction. A file whose
first line is `-- no-transaction` runs statement by statement, for CREATE INDEX CONCURRENTLY; its
statements must bear being run again (IF NOT EXISTS). Belongs here: applying and printing them. What
does not: rights and tables, which the files hold. Modelled on plain-SQL runners such as
https://flywaydb.org, without their lock table: our lock is the session's and dies with it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql as pgsql

from kb_resources.errors import ConflictError, IntegrityError, PolicyError
from kb_resources.store.migration_files import (
    MIGRATIONS,
    Migration,
    load_migrations,
    split_statements,
)
from kb_resources.store.server_floors import check_floors, vector_too_old
from kb_resources.store.translate import cannot_connect, translate

_Connection = psycopg.Connection[tuple[object, ...]]
_LOCK_KEY = 0x6B62_6D69_6772_6174  # "kbmigrat"
_POLL_S = 0.05

_BOOKKEEPING = """\
create schema if not exists kb;
create table if not exists kb.schema_migration (
  number      int primary key,
  name        text not null,
  checksum    text not null,
  applied_at  timestamptz not null default now()
);
comment on table kb.schema_migration is 'Migrations applied, with the SHA-256 of their files.';
"""
_RECORD = "insert into kb.schema_migration (number, name, checksum) values (%s, %s, %s)"
_CONCURRENT_INDEX = re.compile(
    r"create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?(?P<name>\w+)\s+on\s+"
    r"(?:only\s+)?(?P<schema>\w+)\.",
    re.IGNORECASE,
)
_INVALID = """
    select from pg_index where indexrelid = to_regclass(%s) and not indisvalid
"""


def migrate(
    target: str | psycopg.Connection[tuple[object, ...]],
    *,
    folder: Path = MIGRATIONS,
    vector: bool = True,
    wait_s: float = 300.0,
) -> tuple[Migration, ...]:
    """Apply what is missing; safe to call from many processes at once, and after any crash.

    Args:
        target: connection string of the schema's owner, or an idle connection as the owner. Not
            through a pooler in transaction mode: the lock belongs to the session.
        folder: where the files lie.
        vector: whether the extension pgvector is required (and made if missing).
        wait_s: how long to wait for another migrating process.

    Returns:
        The migrations applied now, in order.

    Raises:
        IntegrityError: an applied file changed, is missing here, or a new one comes too late.
        InputError: the server is too old or has no pgvector.
        PolicyError: the owner may not create the extension or its objects.
        ConflictError: another process held the lock for longer than `wait_s`.
        UnavailableError: the database is away.
    """
    migrations = load_migrations(folder)
    with _session(target) as conn, _migration_lock(conn, wait_s):
        check_floors(conn, vector=vector)
        if vector:
            _ensure_vector(conn)
        if not _has_bookkeeping(conn):
            with conn.transaction():
                conn.execute(_BOOKKEEPING)
        missing = _unapplied(migrations, _applied(conn))
        for migration in missing:
            _apply(conn, migration)
    return missing


def pending(
    target: str | psycopg.Connection[tuple[object, ...]], *, folder: Path = MIGRATIONS
) -> tuple[Migration, ...]:
    """Migrations that `migrate` would apply; changes nothing.

    Raises:
        IntegrityError: as for `migrate`.
        UnavailableError: the database is away.
    """
    with _session(target) as conn:
        applied = _applied(conn) if _has_bookkeeping(conn) else []
    return _unapplied(load_migrations(folder), applied)


def ddl(*, folder: Path = MIGRATIONS) -> str:
    """The whole schema as a script for psql or another tool; `migrate` then finds nothing to do.

    The script needs what `extension_ddl` creates, and is for a database without our schema.
    """
    parts = [_BOOKKEEPING]
    for migration in load_migrations(folder):
        values = pgsql.SQL(", ").join(
            [pgsql.Literal(migration.number), migration.label, migration.checksum]
        )
        record = pgsql.SQL(_RECORD.partition(" values ")[0] + " values ({});\n").format(values)
        body = migration.text.rstrip().removesuffix(";") + ";\n" + record.as_string()
        wrapped = f"begin;\n{body}commit;\n" if migration.transactional else body
        parts.append(f"-- {migration.label}\n{wrapped}")
    return "\n".join(parts)


def extension_ddl() -> str:
    """What only a privileged role may run, before everything else."""
    return "create extension if not exists vector;\n"


def _apply(conn: _Connection, migration: Migration) -> None:
    record = (migration.number, migration.label, migration.checksum)
    try:
        if migration.transactional:
            with conn.transaction():
                conn.execute(migration.text.encode())
                conn.execute(_RECORD, record)
        else:
            for statement in split_statements(migration.text):
                _drop_broken_index(conn, statement)
                conn.execute(statement.encode())
            conn.execute(_RECORD, record)
    except psycopg.Error as error:
        raise translate(error, doing=f"migration {migration.label}") from error


def _drop_broken_index(conn: _Connection, statement: str) -> None:
    """Drop what an interrupted concurrent build left: a name that exists and an index that lies."""
    match = _CONCURRENT_INDEX.search(statement)
    if match is None:
        return
    index = pgsql.Identifier(match["schema"].lower(), match["name"].lower())
    if conn.execute(_INVALID, [index.as_string()]).fetchone() is not None:
        conn.execute(pgsql.SQL("drop index concurrently if exists {}").format(index))


def _ensure_vector(conn: _Connection) -> None:
    row = conn.execute("select extversion from pg_extension where extname = 'vector'").fetchone()
    try:
        if row is None:
            conn.execute(extension_ddl().encode())
        elif vector_too_old(str(row[0])):
            conn.execute("alter extension vector update")
    except psycopg.errors.InsufficientPrivilege as error:
        raise PolicyError(
            "This role may not create or update the extension pgvector.",
            next_step="Have an administrator run the output of `kb db ddl --extensions` once.",
            code="extension_missing",
        ) from error


def _has_bookkeeping(conn: _Connection) -> bool:
    row = conn.execute("select to_regclass('kb.schema_migration') is not null").fetchone()
    return row is not None and bool(row[0])


def _applied(conn: _Connection) -> Sequence[tuple[object, ...]]:
    return conn.execute(
        "select number, name, checksum from kb.schema_migration order by number"
    ).fetchall()


def _unapplied(
    migrations: Sequence[Migration], applied: Sequence[tuple[object, ...]]
) -> tuple[Migration, ...]:
    known = {migration.number: migration for migration in migrations}
    for number, label, checksum in applied:
        migration = known.pop(int(str(number)), None)
        if migration is None:
            raise IntegrityError(
                f"The database has migration {label}, which this release does not know.",
                next_step="Use the release that applied it, or a later one.",
                code="schema_newer",
            )
        if migration.checksum != checksum:
            raise IntegrityError(
                f"Migration {migration.label} changed after it was applied as {label}.",
                next_step="Restore the file and put the change into a new migration.",
                code="migration_changed",
            )
    newest = max((int(str(number)) for number, *_ in applied), default=0)
    if late := [migration.label for migration in known.values() if migration.number < newest]:
        raise IntegrityError(
            f"{', '.join(late)} would run after later ones that are applied already.",
            next_step="Give it a higher number.",
            code="migration_order",
        )
    return tuple(known.values())


@contextmanager
def _session(target: str | _Connection) -> Iterator[_Connection]:
    """An autocommitting connection; one that was given is handed back as it was."""
    if isinstance(target, psycopg.Connection):
        before = target.autocommit
        target.autocommit = True
        try:
            yield target
        finally:
            if not target.closed:
                target.autocommit = before
        return
    try:
        conn = psycopg.connect(target, autocommit=True, application_name="kb migrate")
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise cannot_connect(error) from error
    with conn:
        yield conn


@contextmanager
def _migration_lock(conn: _Connection, wait_s: float) -> Iterator[None]:
    """Hold the database's migration lock.

    It is polled, not waited for: a waiting statement holds a snapshot, and CREATE INDEX
    CONCURRENTLY in the process that has the lock would wait for that snapshot for ever.
    """
    deadline = time.monotonic() + wait_s
    try:
        while not _holds(conn.execute("select pg_try_advisory_lock(%s)", [_LOCK_KEY])):
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"Another process has been migrating this database for {wait_s:.0f} s.",
                    next_step="Wait for it, or end its session, then try again.",
                )
            time.sleep(_POLL_S)
        yield
    except psycopg.Error as error:
        raise translate(error, doing="migrating") from error
    finally:
        if not conn.closed and not conn.broken:
            conn.execute("select pg_advisory_unlock(%s)", [_LOCK_KEY])


def _holds(cursor: psycopg.Cursor[tuple[object, ...]]) -> bool:
    row = cursor.fetchone()
    return row is not None and bool(row[0])
