"""What the configured databases say: reach, versions, schema, roles, clock, backlog, the daemon.

Belongs here: examinations over SQL that change nothing. What does not: mending. The embedded server
is not started for it. Daemons write a heartbeat every 30 seconds, and Dagster's own pages call one
ill after five minutes: docs.dagster.io/deployment/oss/dagster-daemon.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg

from kb.doctor.finding import Finding, fine, problem, warning
from kb_resources.settings import Settings
from kb_resources.store.roles import APP_ROLE, DAGSTER_DATABASE, PIPELINE_ROLE

CONNECT_S = 5
CLOCK_S = 5.0
SILENT_S = 300.0
WAITING = "1 hour"

_ROLE = """
    select current_user, r.rolsuper, r.rolbypassrls,
      exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'kb' and pg_has_role(current_user, c.relowner, 'usage')),
      pg_has_role(current_user, %s, 'usage'),
      exists (select from pg_roles p where p.rolname = %s), clock_timestamp()
    from pg_roles r where r.rolname = current_user
"""
_BACKLOG = """
    select count(*) filter (where state = 'failed'),
      count(*) filter (where state = 'pending' and updated_at < now() - %s::interval)
    from kb.document
"""
_REVIEWS = """
    select s.name, count(*), min(d.updated_at) from kb.document d join kb.scope s using (scope_id)
    where d.state = 'quarantined' group by s.name order by 2 desc
"""
_NEWEST = """
    select s.name, v.digest from kb.document d join kb.scope s using (scope_id)
    join kb.version v using (document_key)
    where d.state = 'indexed' and v.digest is not null order by v.version_key desc limit 5
"""
_RUNS = """
    select count(*) filter (where status <> 'QUEUED'), count(*) filter (where status = 'QUEUED'),
      (array_agg(run_id order by create_timestamp))[1]
    from runs where status in ('STARTED', 'STARTING', 'CANCELING', 'QUEUED')
      and create_timestamp < now() at time zone 'utc' - %s::interval
"""
_HEARTBEATS = "select max(timestamp) from daemon_heartbeats"


def database(settings: Settings) -> Iterator[Finding]:
    """Every connection that is configured, and what lies behind it."""
    from kb_resources.compose import embedded_server, own_server

    if own_server(settings):
        given = {
            "owner": settings.database_url,
            "pipeline": settings.pipeline_database_url,
            "app": settings.app_database_url,
        }
        connections = {role: dsn for role, dsn in given.items() if dsn}
    else:
        server = embedded_server(settings)
        found = server.status()
        if not found.running:
            yield warning("database", "The embedded server does not run.", "kb db start")
            return
        yield fine("database", f"Embedded PostgreSQL {found.version} runs.")
        connections = {"owner": server.dsn("owner"), "app": server.dsn("app")}
    for role, dsn in connections.items():
        yield from _connection(role, dsn, settings)


def _connection(role: str, dsn: str, settings: Settings) -> Iterator[Finding]:
    about = f"database ({role})"
    try:
        with psycopg.connect(dsn, connect_timeout=CONNECT_S, autocommit=True) as conn:
            yield from _server(about, conn)
            yield from _rights(about, role, conn)
            if role == "owner":
                yield from _schema(about, conn, settings)
    except psycopg.Error as error:
        yield problem(
            about,
            f"It does not answer as asked: {_first_line(error)}",
            f"See to host, account and password of {_variable(role)}.",
        )


def _server(about: str, conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    from kb_resources.store.server_floors import check_floors

    check_floors(conn)
    row = conn.execute("select clock_timestamp()").fetchone()
    apart = abs((row[0] - datetime.now(UTC)).total_seconds()) if row else 0.0
    if apart > CLOCK_S:
        yield warning(
            about,
            f"The server's clock and ours are {apart:.0f} s apart: what holds when gets mixed up.",
            "Let both machines keep time by NTP.",
        )


def _rights(about: str, role: str, conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """The pipeline and the reading side must be held by row level security."""
    ours = PIPELINE_ROLE if role == "pipeline" else APP_ROLE
    there = conn.execute("select to_regrole(%s) is not null", [ours]).fetchone()
    if role == "owner" or there != (True,):
        return
    row = conn.execute(_ROLE, [ours, ours]).fetchone()
    if row is None:
        return
    user, superuser, bypasses, owns, member = row[:5]
    if superuser or bypasses or owns:
        why = (
            "a superuser" if superuser else "above row level security" if bypasses else "the owner"
        )
        yield problem(
            about,
            f"{_variable(role)} connects as {user}, which is {why}: the second wall is open.",
            f"Connect as a role of its own that is a member of {ours} and of nothing else.",
        )
    elif not member:
        yield problem(about, f"{user} may not act as {ours}.", f"GRANT {ours} TO {user};")
    else:
        yield fine(about, f"{user} is held by row level security.")


def _schema(about: str, conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    from kb_resources.store.migrate import pending

    missing = pending(conn)
    if missing:
        yield warning(
            about,
            f"{len(missing)} migrations are not applied, from {missing[0].label} on.",
            "kb backup, then kb db migrate",
        )
        return
    yield fine(about, "PostgreSQL and pgvector are new enough, the schema is up to date.")
    row = conn.execute(_BACKLOG, [WAITING]).fetchone()
    failed, waiting = row or (0, 0)
    if failed:
        yield warning(
            "documents",
            f"{failed} failed.",
            "kb documents list --scope S --state failed says why; in Dagster launch kb_batch with "
            "where: failed.",
        )
    if waiting:
        yield warning(
            "documents",
            f"{waiting} have waited for more than {WAITING}.",
            "Start the daemon (make up), or run kb ingest on their folder again.",
        )
    yield from _reviews(conn)
    yield from _bytes(conn, settings)


def _reviews(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    found = conn.execute(_REVIEWS).fetchall()
    if found:
        scopes = ", ".join(f"{name} ({count})" for name, count, _ in found[:5])
        since = min(oldest for _, _, oldest in found)
        yield warning(
            "reviews",
            f"{sum(count for _, count, _ in found)} wait for a person, since {since:%Y-%m-%d}: "
            f"{scopes}.",
            f"kb review list --scope {found[0][0]}, then release or reject; or kb_scopes/health.",
        )


def _bytes(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Two installations on one database would look for each other's bytes in their own places."""
    from kb_resources.acquire import open_blob_store

    newest = conn.execute(_NEWEST).fetchall()
    place = settings.blob_location.rstrip("/")
    if newest and not any(open_blob_store(f"{place}/{s}").exists(d) for s, d in newest):
        yield problem(
            "blobs",
            f"Of the newest {len(newest)} published documents none has its bytes in {place}.",
            "Set KB_HOME or KB_BLOB_URL to where this database's documents were ingested; a second "
            "installation needs a database of its own.",
        )


def dagster(settings: Settings) -> Iterator[Finding]:
    """Does the daemon live? Without it no sensor and no schedule runs."""
    dsn = _dagster_dsn(settings)
    if dsn is None:
        return
    told = settings.dagster_database_url
    if told and not told.startswith(("postgresql://", "postgresql+psycopg2://")):
        yield problem(
            "Dagster",
            "KB_DAGSTER_DATABASE_URL is no postgresql+psycopg2:// address.",
            "Write postgresql+psycopg2://user:password@host/database.",
        )
        return
    try:
        with psycopg.connect(dsn, connect_timeout=CONNECT_S) as conn:
            row = conn.execute("select to_regclass('daemon_heartbeats') is null").fetchone()
            last = None if row == (True,) else (conn.execute(_HEARTBEATS).fetchone() or (None,))[0]
            runs = conn.execute(_RUNS, [WAITING]).fetchone() if last else None
    except psycopg.Error as error:
        yield problem(
            "Dagster",
            f"Its storage does not answer: {_first_line(error)}",
            "See to KB_DAGSTER_DATABASE_URL.",
        )
        return
    if last is None:
        yield warning("Dagster", "It has never run here: nothing watches folders.", "make up")
        return
    silent = (datetime.now(UTC) - last.replace(tzinfo=UTC)).total_seconds()
    if silent > SILENT_S:
        yield warning(
            "Dagster",
            f"The daemon has been silent for {silent / 60:.0f} minutes: sensors stand still.",
            "make up, and look at logs in KB_HOME.",
        )
    else:
        yield fine("Dagster", f"The daemon wrote {silent:.0f} s ago.")
    going, queued, oldest = runs or (0, 0, None)
    if going or queued:
        yield warning(
            "runs",
            f"{going} have gone on and {queued} have been queued for more than {WAITING}, "
            f"{str(oldest)[:8]} first.",
            "Runs, In progress: one whose log stands still is ended by Terminate, nothing is half "
            "written; queued ones follow. By themselves runs end after four hours.",
        )


def _dagster_dsn(settings: Settings) -> str | None:
    if settings.dagster_database_url:
        return settings.dagster_database_url.replace("+psycopg2", "", 1)
    from kb_resources.compose import embedded_server

    server = embedded_server(settings)
    return server.dsn("owner", DAGSTER_DATABASE) if server.status().running else None


def _variable(role: str) -> str:
    return "KB_DATABASE_URL" if role == "owner" else f"KB_{role.upper()}_DATABASE_URL"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
