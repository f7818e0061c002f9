"""`python -m kb_assets.forget`: what Dagster's storage knows of a document or a person goes.

Belongs here: own SQL over Dagster's Postgres tables and the logs of its runs, since Dagster has no
call that deletes events of one partition (`delete_run` would take those of 199 other documents
along). Events and check results of the partition are deleted; where other rows name the document,
an alias is written. One JSON object in (`partition`, `alias`, `names`), one out: rows by table.
Tables as of dagster 1.13.27, `_core/storage/event_log/schema.py` and `runs/schema.py`;
tests/dagster/test_forget.py fails when a new release brings a column of text that is not looked at.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from kb_resources.settings import Settings
    from kb_resources.stages.erase import Forgotten

NOT_LOOKED_AT = frozenset({"alembic_version", "daemon_heartbeats", "instance_info", "snapshots"})
"""Tables without names of documents: versions, heartbeats, compiled job definitions."""

_BY_PARTITION = {
    "asset_event_tags": (
        "delete from asset_event_tags t using event_logs e where t.event_id = e.id "
        "and e.partition = %(partition)s"
    ),
    "asset_check_executions": (
        "delete from asset_check_executions where partition = %(partition)s"
    ),
    "event_logs": "delete from event_logs where partition = %(partition)s",
    "dynamic_partitions": "delete from dynamic_partitions where partition = %(partition)s",
}
_NEWEST = """
    update asset_keys a set cached_status_data = null, last_materialization = (
      select e.event from event_logs e where e.asset_key = a.asset_key
        and e.dagster_event_type = 'ASSET_MATERIALIZATION' order by e.id desc limit 1)
    where a.last_materialization like %(like)s or a.cached_status_data like %(like)s
"""
_TEXT_COLUMNS = """
    select table_name, column_name from information_schema.columns
    where table_schema = current_schema() and data_type in ('text', 'character varying')
      and table_name <> all (%(not_looked_at)s)
    order by table_name, ordinal_position
"""
_EDGE = "[[:alnum:]_-]"


def forget(
    dsn: str, folders: Sequence[Path], *, partition: str, alias: str, names: Sequence[str]
) -> dict[str, int]:
    """Delete a partition's rows and write the alias for names elsewhere.

    Args:
        dsn: libpq connection string of Dagster's Postgres storage.
        folders: folders with logs of runs.
        partition: `scope:document`, or empty for names alone.
        alias: ASCII letters, digits and hyphens.
        names: what to replace, as whole words.

    Returns:
        Rows deleted by table, rows rewritten by `named in table.column`, and log files.

    Raises:
        psycopg.Error: the storage is away or not Postgres.
        OSError: a log cannot be read or written.
    """
    counts: dict[str, int] = {}
    with psycopg.connect(dsn) as conn:
        if partition:
            for table, statement in _BY_PARTITION.items():
                _add(counts, table, conn.execute(statement, {"partition": partition}).rowcount)
            like = f"%{_like(partition)}%"
            _add(counts, "asset_keys", conn.execute(_NEWEST, {"like": like}).rowcount)
        columns = conn.execute(_TEXT_COLUMNS, {"not_looked_at": list(NOT_LOOKED_AT)}).fetchall()
        for table, column in columns:
            for written in dict.fromkeys(form for name in names for form in _forms(name)):
                _add(
                    counts,
                    f"named in {table}.{column}",
                    _replace(conn, table, column, written, alias),
                )
    _add(counts, "log files", sum(_rewrite_logs(folder, names, alias) for folder in folders))
    return counts


def _replace(conn: psycopg.Connection[Any], table: str, column: str, name: str, alias: str) -> int:
    pattern = f"(?<!{_EDGE}){re.sub(r'([^A-Za-z0-9_ -])', _escaped, name)}(?!{_EDGE})"
    statement = sql.SQL(
        "update {table} set {column} = regexp_replace({column}, %(pattern)s, %(alias)s, 'g') "
        "where strpos({column}, %(name)s) > 0 and {column} ~ %(pattern)s"
    ).format(table=sql.Identifier(table), column=sql.Identifier(column))
    return conn.execute(statement, {"pattern": pattern, "alias": alias, "name": name}).rowcount


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[1]}" if match[1].isascii() else match[1]


def _forms(name: str) -> list[str]:
    """A name as it stands in text, in JSON, and in JSON that is a string in JSON."""
    once = json.dumps(name)[1:-1]
    return [name, once, json.dumps(once)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1]]


def _like(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def _add(counts: dict[str, int], what: str, number: int) -> None:
    if number > 0:
        counts[what] = counts.get(what, 0) + number


def _rewrite_logs(folder: Path, names: Sequence[str], alias: str) -> int:
    """Write the alias into what steps and processes printed; files changed."""
    forms = {form for name in names for form in _forms(name)}
    words = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])(?:{words})(?![\w-])".encode())
    changed = 0
    for file in sorted(folder.rglob("*")) if folder.is_dir() and names else ():
        if not file.is_file() or file.is_symlink() or file.suffix in (".yaml", ".yml", ".lock"):
            continue
        with suppress(FileNotFoundError):  # Dagster deletes logs of its own accord
            data = file.read_bytes()
            fresh = pattern.sub(alias.encode(), data)
            if fresh != data:
                # In place: a process may hold the file open for appending.
                with file.open("r+b") as stream:
                    stream.write(fresh)
                    stream.truncate()
                changed += 1
    return changed


def storage_dsn(settings: Settings) -> str:
    """Where the configured Dagster storage is, as a connection string of libpq."""
    from kb_assets.environment import storage_url

    return storage_url(settings).replace("+psycopg2", "", 1)


def log_folders(settings: Settings) -> list[Path]:
    """Folders in which Dagster's runs and processes leave logs."""
    from kb_assets.environment import dagster_home

    return [dagster_home(settings), settings.home / "logs"]


def forget_here(settings: Settings, what: Forgotten) -> dict[str, int]:
    """What `stages.erase` asks of Dagster, done in this process.

    Raises:
        UnavailableError: the storage is away.
    """
    from kb_resources.errors import UnavailableError

    try:
        return forget(
            storage_dsn(settings),
            log_folders(settings),
            partition=what.partition,
            alias=what.alias,
            names=what.names,
        )
    except (psycopg.Error, OSError) as error:
        raise UnavailableError(
            f"Dagster's storage was not emptied: {error}".strip(),
            next_step="Start its database, give write access to its logs; the next reconciliation "
            "tries again.",
        ) from error


def main() -> int:
    """Read the request from stdin; exit code 5 when the storage is away."""
    from kb_resources.settings import load_settings

    request: Mapping[str, Any] = json.load(sys.stdin)
    settings = load_settings()
    try:
        counts = forget(
            storage_dsn(settings),
            log_folders(settings),
            partition=request["partition"],
            alias=request["alias"],
            names=request["names"],
        )
    except (psycopg.Error, OSError) as error:
        print(f"Dagster's storage: {error}".strip(), file=sys.stderr)
        return 5
    print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
