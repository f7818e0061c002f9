"""The real PgBouncer in transaction mode, on a server whose owner is no superuser.

Two server connections for each role are shared by more clients than there are connections, so
whatever a client left behind (settings, prepared statements, locks) would meet the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kb.http.worker import _only_worker
from kb_resources import embed
from kb_resources.compose import open_line
from kb_resources.model import Principal, Source, SourceKind
from kb_resources.settings import Settings
from kb_resources.stages.request import IngestRequest
from kb_resources.store import documents
from kb_resources.store.migrate import extension_ddl, migrate
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer
from tests.conftest import make_open_folder
from tests.integration.search.conftest import World

ROOT = Path(__file__).parents[2]
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
ROLES = ("plain", "kb_pipeline", "kb_app")
SERVER_CONNECTIONS = 2
LIMIT_S = 240


@dataclass
class Managed:
    """A server whose owner is no superuser, with PgBouncer before it."""

    admin: str
    direct: str
    pooled: Callable[[str], str]


@pytest.fixture(scope="module")
def managed() -> Iterator[Managed]:
    assert PGBOUNCER is not None, "run tools/system-packages, which installs pgbouncer"
    folder = make_open_folder()
    server = EmbeddedServer(folder / "home", settings={"fsync": "off"}, start_timeout_s=60.0)
    server.start()
    try:
        admin = server.dsn("owner", "postgres")
        with psycopg.connect(admin, autocommit=True) as conn:
            conn.execute("create role plain login createrole nosuperuser")
            conn.execute("create database theirs owner plain")
        with psycopg.connect(server.dsn("owner", "theirs"), autocommit=True) as conn:
            conn.execute(extension_ddl())
        direct = make_conninfo(server.dsn("owner", "theirs"), user="plain")
        migrate(direct)
        with bouncing(folder, server) as pooled:
            yield Managed(server.dsn("owner", "theirs"), direct, pooled)
    finally:
        server.destroy()
        shutil.rmtree(folder)


@contextmanager
def bouncing(folder: Path, server: EmbeddedServer) -> Iterator[Callable[[str], str]]:
    """PgBouncer over the server's socket; gives the connection string of a role."""
    place = conninfo_to_dict(server.dsn("owner", "theirs"))
    account = Path(str(place["host"])).owner() if os.geteuid() == 0 else ""  # it refuses root
    socket = folder / "bouncer"
    socket.mkdir(mode=0o755)
    if account:
        shutil.chown(socket, account)
    users = folder / "users.txt"
    users.write_text("".join(f'"{role}" ""\n' for role in ROLES))
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        "[databases]\n"
        f"theirs = host={place['host']} port={place.get('port', 5432)} dbname=theirs\n"
        "[pgbouncer]\n"
        "pool_mode = transaction\n"
        f"default_pool_size = {SERVER_CONNECTIONS}\n"
        f"unix_socket_dir = {socket}\nunix_socket_mode = 0777\nlisten_port = 6432\n"
        f"auth_type = trust\nauth_file = {users}\nlogfile = {socket}/log\n"
    )
    switch = ["-u", account] if account else []
    process = subprocess.Popen(
        [str(PGBOUNCER), *switch, str(settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:

        def dsn(role: str) -> str:
            return make_conninfo(host=str(socket), port=6432, dbname="theirs", user=role)

        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                psycopg.connect(dsn("kb_app")).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, (socket / "log").read_text()
                assert time.monotonic() < deadline
                threading.Event().wait(0.05)
        yield dsn
    finally:
        process.terminate()
        process.wait(LIMIT_S)


@pytest.fixture
def database(managed: Managed) -> Iterator[Database]:
    """As a deployment has it: a connection string for each role, none for the owner."""
    opened = Database.external(
        "",
        pipeline_dsn=managed.pooled("kb_pipeline"),
        app_dsn=managed.pooled("kb_app"),
        application_name="kb test",
    )
    with opened:
        yield opened


@pytest.mark.requirement("O-19")
def test_many_clients_on_few_connections_see_their_own_scopes_and_nothing_is_left_behind(
    managed: Managed, database: Database
) -> None:
    names = [f"pooled{number}" for number in range(6)]
    worlds = {name: World(database, name) for name in names}
    problems: list[str] = []

    def work(name: str) -> None:
        world = worlds[name]
        try:
            for number in range(5):
                world.publish(f"{name}-{number}", [f"leave rule of {name} number {number}"])
                for mode in ("hybrid", "text", "vector"):
                    found = world.search("leave rule", mode=mode, k=20).hits
                    seen = {hit.document_id.partition("-")[0] for hit in found}
                    if (
                        seen != {name}
                        or len(found) != number + 1
                        or {hit.scope for hit in found} != {name}
                    ):
                        problems.append(f"{name} {mode}: {sorted(seen)} {len(found)}")
        except Exception as error:  # noqa: BLE001 - told below
            problems.append(f"{name}: {error!r}")

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S * 2)
    assert problems == []
    with psycopg.connect(managed.admin, autocommit=True) as conn:
        rows = conn.execute(
            "select usename, count(*) from pg_stat_activity where datname = 'theirs'"
            " and usename in ('kb_pipeline', 'kb_app') group by 1"
        ).fetchall()
    assert {name: count <= SERVER_CONNECTIONS for name, count in rows} == {
        "kb_pipeline": True,
        "kb_app": True,
    }
    # What the next client of a pooled connection finds: no scope, no role, no statement, no lock.
    for role in ("kb_app", "kb_pipeline"):
        for _ in range(2 * SERVER_CONNECTIONS):
            with psycopg.connect(managed.pooled(role), prepare_threshold=None) as conn:
                left = conn.execute(
                    "select coalesce(current_setting('app.scope', true), ''),"
                    " current_user = session_user,"
                    " (select count(*) from pg_prepared_statements),"
                    " (select count(*) from pg_locks where locktype = 'advisory'),"
                    " (select count(*) from pg_cursors where name <> '')"
                ).fetchone()
            assert left == ("", True, 0, 0, 0)


def test_one_worker_at_a_time_behind_a_pooler(managed: Managed, database: Database) -> None:
    other = Database.external("", pipeline_dsn=managed.pooled("kb_pipeline"), app_dsn="")
    with other:
        for _ in range(2):
            with _only_worker(database) as first:
                assert first
                for _ in range(2 * SERVER_CONNECTIONS):
                    with _only_worker(other) as second:
                        assert not second
                with database.transaction("pipeline") as conn:
                    documents.ensure_scope(conn, "beside", {})


@pytest.mark.requirement("O-19")
def test_without_a_superuser_row_level_security_holds(managed: Managed, database: Database) -> None:
    world = World(database, "secured")
    world.publish("doc", ["alpha beta"])
    assert world.found("alpha") == ["doc"]
    with psycopg.connect(managed.direct, autocommit=True) as conn:
        superusers = conn.execute(
            "select rolname from pg_roles where rolname = any(%s) and (rolsuper or rolbypassrls)",
            [list(ROLES)],
        ).fetchall()
    assert superusers == []
    with database.transaction("app", "elsewhere") as conn:
        for table in ("passage", "lex", "embedding", "version", "document"):
            assert conn.execute(f"select count(*) from kb.{table}").fetchone() == (0,)
    stranger = Principal("p", scopes=frozenset({"elsewhere"}))
    with pytest.raises(Exception, match="secured"):
        world.search("alpha", principal=stranger)


_STATEMENTS = (
    r"(listen|unlisten|prepare|deallocate|discard)\s"
    r"|set\s+(?!local\b|transaction\b|session_replication_role\b|time\s+zone\b)[a-z_.]+\s*(=|to\b)"
)
_ANYWHERE = r"\bpg_(try_)?advisory_lock(_shared)?\(|\bcreate\s+temp|\bwith\s+hold\b"
SESSION_STATE = {  # SQL is written in lower case here
    ".py": re.compile(rf"""["']\s*({_STATEMENTS})|{_ANYWHERE}"""),
    ".sql": re.compile(rf"(?<=;\n)({_STATEMENTS})|{_ANYWHERE}"),
}
"""What would meet the next client of a connection; PgBouncer itself keeps track of time zones."""
DIRECT = {
    "kb_resources/store/migrate.py",  # migrations go past the pooler
    "kb_resources/store/scrub.py",  # VACUUM on a connection of its own, as the owner
    "kb_resources/store/server.py",  # the embedded server has none
}


def test_no_statement_keeps_state_in_a_session() -> None:
    found = set()
    for package in ("kb", "kb_resources", "kb_assets", "kb_checks"):
        for path in (ROOT / package).rglob("*"):
            pattern = SESSION_STATE.get(path.suffix)
            if pattern is not None and pattern.search(path.read_text("utf-8")):
                found.add(str(path.relative_to(ROOT)))
    assert {name for name in found if "/migrations/" not in name} == DIRECT


def test_groups_of_the_line_go_through_two_connections_of_a_pooler(
    managed: Managed, tmp_path: Path
) -> None:
    models = ROOT / ".kb" / "models"
    embed.prepare(models, embed.DEFAULT_MODEL)
    settings = Settings(
        home=tmp_path / "home",
        database_url=managed.direct,
        pipeline_database_url=managed.pooled("kb_pipeline"),
        app_database_url=managed.pooled("kb_app"),
        models_dir=models,
        blob_url=str(tmp_path / "blobs"),
    )
    ends: dict[str, set[object]] = {}

    def work(name: str) -> None:
        with open_line(settings, actor=name) as line:
            keys = []
            for number in range(6):
                path = tmp_path / f"{name}{number}.md"
                path.write_text(
                    f"# {name} {number}\n\nThe key of room {number} is at desk {name}.\n"
                )
                source = Source(SourceKind.FILE, str(path), path.name)
                keys.append(line.register(IngestRequest(scope=name, source=source)))
            line.run_all(keys)
            ends[name] = {row.state for row in line.rows(keys)}

    names = ("grouped1", "grouped2", "grouped3")
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == {name: {"indexed"} for name in names}
    with psycopg.connect(managed.admin) as conn:
        assert conn.execute("select * from kb.verify_lifecycle(null, null)").fetchall() == []
