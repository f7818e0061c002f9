"""Makes the files of a database give up what was deleted from it.

Belongs here: rewriting tables, fresh statistics, old write-ahead log. What does not: deleting rows.
A deleted row stays in its table's file until that is rewritten, in the statistics until the next
ANALYZE, in the log until its segment is removed: postgresql.org/docs, "VACUUM", "wal_recycle".
On your own server only our tables are vacuumed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql as pgsql

REWRITE_LIMIT_BYTES = 512 * 2**20
"""A database larger than this is vacuumed but not rewritten, which would block its readers."""
_LOCK_WAIT = "10s"
_TABLES = """
    select format('%%I.%%I', n.nspname, c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname = %(schema)s order by c.oid
"""


def scrub(dsn: str, *, schema: str, ours: bool, rewrite: bool | None = None) -> str:
    """Vacuum a schema's tables; on the embedded server rewrite them and drop the old log.

    Args:
        dsn: of the tables' owner, for the embedded server of its superuser.
        schema: whose tables.
        ours: whether it is the embedded server. Another's settings and log are not touched.
        rewrite: whether to rewrite tables, which locks out their readers meanwhile; None: where
            it is ours and not larger than `REWRITE_LIMIT_BYTES`.

    Returns:
        A sentence about what may still be on disk; empty where nothing is.

    Raises:
        psycopg.Error: the database is away.
    """
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute("select pg_database_size(current_database())").fetchone()
        size = int(row[0]) if row else 0
        wanted = ours and size <= REWRITE_LIMIT_BYTES if rewrite is None else rewrite
        conn.execute(pgsql.SQL("set lock_timeout = {}").format(_LOCK_WAIT))
        tables = [str(found[0]) for found in conn.execute(_TABLES, {"schema": schema}).fetchall()]
        rewritten = [wanted and _rewrite(conn, table) for table in tables]
        for table, done in zip(tables, rewritten, strict=True):
            if not done:
                conn.execute(f"vacuum (analyze) {table}".encode())
        if ours:
            _drop_old_log(conn)
    if not ours:
        return "Your PostgreSQL server's files, log archive and backups are yours to rotate."
    if all(rewritten):
        return ""
    return (
        f"Deleted rows may stay in the files of a database of {size // 2**20} MB until their pages "
        "are used again; kb erasures --resume frees them at once."
    )


def _rewrite(conn: psycopg.Connection[Any], table: str) -> bool:
    try:
        conn.execute(f"vacuum (full, analyze) {table}".encode())
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
        return False
    return True


def _drop_old_log(conn: psycopg.Connection[Any]) -> None:
    """Remove segments of the write-ahead log instead of using them again with their content."""
    with suppress(psycopg.errors.LockNotAvailable):
        conn.execute("vacuum (full) pg_catalog.pg_statistic")
    conn.execute("alter system set wal_recycle = off")
    try:
        conn.execute("select pg_reload_conf()")
        conn.execute("select pg_switch_wal()")
        conn.execute("checkpoint")
        conn.execute("select pg_switch_wal()")
        conn.execute("checkpoint")
    finally:
        conn.execute("alter system reset wal_recycle")
        conn.execute("select pg_reload_conf()")
