"""Dagster's own tables kept small: what no page shows any more goes after some days.

Belongs here: own SQL over the tables of Dagster's Postgres storage, since Dagster itself gives only
ticks a retention, and deleting a run there would take the newest materialisations of 200 documents
along. What does not: erasing (`forget`), which looks for names and not for age.

Kept for ever: the newest event of each kind of each partition and the newest result of each of its
checks, thus every colour and every number of the asset pages; runs that these point to; whatever
belongs to a run that has not ended; one event a day of assets without partitions, for their plots.
Tables as of dagster 1.13.27, `_core/storage/event_log/schema.py` and `runs/schema.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

TOGETHER = 20_000
"""Rows one statement deletes at most, so that no lock is held for long."""

TABLES = (
    "event_logs",
    "asset_event_tags",
    "asset_check_executions",
    "runs",
    "run_tags",
    "bulk_actions",
    "snapshots",
)
_OPEN_RUNS = sql.SQL(
    "select run_id from runs where status not in ('SUCCESS', 'FAILURE', 'CANCELED')"
)
_STATEMENTS: Mapping[str, LiteralString] = {
    # What steps and the engine said. Rows that belong to an asset are looked at below.
    "log rows of runs": """
        delete from event_logs where id in (
          select id from event_logs
          where asset_key is null and timestamp < %(before)s
            and run_id not in ({open_runs})
          limit %(together)s)
    """,
    "older events of partitions": """
        delete from event_logs where id in (
          select e.id from event_logs e
          where e.asset_key is not null and e.partition is not null and e.timestamp < %(before)s
            and e.run_id not in ({open_runs})
            and exists (select from event_logs n
              where n.asset_key = e.asset_key and n.partition = e.partition
                and n.dagster_event_type = e.dagster_event_type and n.id > e.id)
          limit %(together)s)
    """,
    "older events of assets": """
        delete from event_logs where id in (
          select e.id from event_logs e
          where e.asset_key is not null and e.partition is null and e.timestamp < %(before)s
            and e.run_id not in ({open_runs})
            and exists (select from event_logs n
              where n.asset_key = e.asset_key and n.partition is null
                and n.dagster_event_type = e.dagster_event_type and n.id > e.id
                and n.timestamp::date = e.timestamp::date)
          limit %(together)s)
    """,
    "older results of checks": """
        delete from asset_check_executions where id in (
          select c.id from asset_check_executions c
          where c.create_timestamp < %(before)s and c.run_id not in ({open_runs})
            and exists (select from asset_check_executions n
              where n.asset_key = c.asset_key and n.check_name = c.check_name
                and n.partition is not distinct from c.partition and n.id > c.id
                and (c.partition is not null
                  or n.create_timestamp::date = c.create_timestamp::date))
          limit %(together)s)
    """,
    "tags of events": """
        delete from asset_event_tags where id in (
          select t.id from asset_event_tags t
          where t.event_timestamp < %(before)s
            and not exists (select from event_logs e where e.id = t.event_id)
          limit %(together)s)
    """,
    # Its tags go along (on delete cascade).
    "runs": """
        delete from runs where id in (
          select r.id from runs r
          where r.create_timestamp < %(before)s and r.run_id not in ({open_runs})
            and not exists (select from event_logs e where e.run_id = r.run_id)
            and not exists (select from asset_check_executions c where c.run_id = r.run_id)
            and not exists (select from asset_keys k where k.last_run_id = r.run_id)
          limit %(together)s)
    """,
    "backfills": """
        delete from bulk_actions where id in (
          select b.id from bulk_actions b
          where b.timestamp < %(before)s and b.status like 'COMPLETED%%'
            and not exists (select from runs r where r.backfill_id = b.key)
          limit %(together)s)
    """,
}
_SIZES = """
    select relname, pg_total_relation_size(c.oid)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and relkind = 'r' and relname = any (%(tables)s)
"""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What pruning did.

    Attributes:
        deleted: rows by kind, in the order they were looked at.
        bytes_by_table: size of each table with its indexes, afterwards. What was freed in it is
            used again by new rows; the file itself seldom shrinks.
    """

    deleted: Mapping[str, int]
    bytes_by_table: Mapping[str, int]


def prune(dsn: str, *, keep_days: float) -> Pruned:
    """Delete what is older than `keep_days` and shown nowhere.

    Args:
        dsn: libpq connection string of Dagster's Postgres storage.
        keep_days: age in days from which rows may go; 0: all that ended.

    Raises:
        psycopg.Error: the storage is away or not Postgres. What was deleted so far stays so.
    """
    deleted = {}
    with psycopg.connect(dsn, autocommit=True) as conn:
        # Dagster writes its times in UTC and without a zone.
        row = conn.execute(
            "select now() at time zone 'utc' - make_interval(secs => %s)", [keep_days * 86_400]
        ).fetchone()
        given = {"before": row and row[0], "together": TOGETHER}
        for kind, statement in _STATEMENTS.items():
            deleted[kind] = _all(conn, sql.SQL(statement).format(open_runs=_OPEN_RUNS), given)
        sizes = conn.execute(_SIZES, {"tables": list(TABLES)}).fetchall()
    return Pruned(deleted, {str(name): int(size) for name, size in sizes})


def _all(
    conn: psycopg.Connection[Any], statement: sql.Composed, given: Mapping[str, object]
) -> int:
    total = 0
    while True:
        found = conn.execute(statement, given).rowcount
        total += found
        if found < TOGETHER:
            return total
