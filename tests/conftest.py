"""Fixtures shared by all tests: a real PostgreSQL, a database of one's own, test data, hypothesis.

Belongs here: what tests of several folders use. What does not: fixtures of one folder.
See https://docs.pytest.org/en/stable/reference/fixtures.html.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

# Nothing in a test outlives it, so nothing need reach the disk.
VOLATILE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "96MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "1GB",
}
_TEMPLATE = "kb_template"
_numbers = itertools.count(1)
_END_SESSIONS = """
    select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
"""
_TABLES = """
    select format('%I.%I', schemaname, tablename) from pg_tables
    where schemaname = 'kb' and tablename <> 'schema_migration'
"""
# Everything a test could change but rows: relations, functions, triggers, policies, settings.
_SHAPE = """
    with ours as (select oid from pg_namespace where nspname in ('kb', 'public'))
    select md5(concat(
      (select string_agg(concat(c.oid, c.relname, c.relnatts, c.relacl, c.relrowsecurity,
        c.relforcerowsecurity, c.reloptions), ',' order by c.oid)
        from pg_class c where relnamespace in (select oid from ours)),
      (select string_agg(concat(oid, xmin), ',' order by oid)
        from pg_proc where pronamespace in (select oid from ours)),
      (select string_agg(concat(oid, xmin), ',' order by oid) from pg_trigger),
      (select string_agg(concat(oid, xmin), ',' order by oid) from pg_policy),
      (select string_agg(concat(oid, xmin), ',' order by oid) from pg_constraint),
      (select string_agg(setconfig::text, ',') from pg_db_role_setting s join pg_database d
        on d.oid = s.setdatabase where d.datname = current_database())
    ))
"""

# What commands print is as wide as the terminal, and tests read it.
os.environ["COLUMNS"] = "100"
os.environ.pop("FORCE_COLOR", None)

settings.register_profile(
    "ci",
    max_examples=30,
    derandomize=True,
    deadline=None,
    database=None,
    # A fixture here is a server or a database, which examples are meant to share.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("ci"), max_examples=2000, derandomize=False)
settings.load_profile("ci")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are no name: those of a gzip file hold the second in which they were made.

    Two workers that name a test differently run none of them.
    """
    return argname if isinstance(val, bytes) and (len(val) > 24 or not val.isascii()) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long forms out unless `-m` speaks of them."""
    if "long" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Folder of the shared test data, which is only read."""
    folder = os.environ.get("KB_TEST_DATA")
    if not folder:
        pytest.skip("KB_TEST_DATA is not set: this test needs the shared test data")
    return Path(folder)


def make_open_folder() -> Path:
    """A new folder that another account can pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="kb-test-"))
    folder.chmod(0o711)
    return folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the account of a server started by root can pass through."""
    folder = make_open_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def new_server(open_folder: Path) -> Iterator[Callable[..., EmbeddedServer]]:
    """Makes servers that this test alone uses; whatever still runs afterwards is destroyed.

    Call it with a home (default: one in `open_folder`) and EmbeddedServer's own arguments.
    """
    made: list[EmbeddedServer] = []

    def make(home: Path | None = None, **arguments: object) -> EmbeddedServer:
        options: dict[str, object] = {"settings": VOLATILE, "start_timeout_s": 60.0, **arguments}
        server = EmbeddedServer(home or open_folder / "home", **options)  # type: ignore[arg-type]
        made.append(server)
        return server

    yield make
    for server in made:
        server.destroy()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """Folder of a server that was started once and stopped; making one costs two CPU seconds."""
    folder = make_open_folder()
    first = EmbeddedServer(folder / "home", settings=VOLATILE)
    try:
        first.start()
        first.stop()
        yield folder / "home" / "postgres"
    finally:
        first.destroy()
        shutil.rmtree(folder)


@pytest.fixture
def used_server(cluster: Path, open_folder: Path) -> Iterator[Callable[..., EmbeddedServer]]:
    """Makes one server like `new_server`, on the data folder that such tests use in turn.

    A test may crash it in any way, but leaves a data folder that starts.
    """
    lent: list[tuple[Path, EmbeddedServer]] = []

    def make(home: Path | None = None, **arguments: object) -> EmbeddedServer:
        home = home or open_folder / "home"
        home.mkdir(parents=True, mode=0o711)
        cluster.rename(home / "postgres")
        options: dict[str, object] = {"settings": VOLATILE, "start_timeout_s": 60.0, **arguments}
        lent.append((home, EmbeddedServer(home, **options)))  # type: ignore[arg-type]
        return lent[0][1]

    yield make
    for home, used in lent:
        used.stop()
        socket_dir = used.status().socket_dir
        if socket_dir is not None and not socket_dir.is_relative_to(home):
            shutil.rmtree(socket_dir)
        (home / "postgres").rename(cluster)


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    """The session's PostgreSQL. Don't stop it, don't use its database `kb`: take `database`."""
    folder = make_open_folder()
    running = EmbeddedServer(folder / "home", settings=VOLATILE)
    try:
        running.start()
        yield running
    finally:
        running.destroy()
        shutil.rmtree(folder)


class SpareDatabases:
    """Copies of a template; copying costs ten times what emptying the tables does.

    A database whose schema, rights or settings a test changed is dropped instead.
    """

    def __init__(self, server: EmbeddedServer, template: str) -> None:
        self._server = server
        self._template = template
        self._spare: list[str] = []
        self._fresh: object = None
        with psycopg.connect(server.dsn("owner", template)) as conn:
            self._tables = [str(row[0]) for row in conn.execute(_TABLES).fetchall()]
            assert not self._used(conn), "migrations that add rows need another way to empty tables"

    def take(self) -> str:
        """Name of an empty database."""
        if self._spare:
            return self._spare.pop()
        name = f"kb_test_{next(_numbers)}"
        with psycopg.connect(self._server.dsn("owner", "postgres"), autocommit=True) as conn:
            conn.execute(f"create database {name} template {self._template} strategy file_copy")
        return name

    def give_back(self, name: str) -> None:
        """Empty it for the next test, or drop it."""
        with psycopg.connect(self._server.dsn("owner", name), autocommit=True) as conn:
            conn.execute(_END_SESSIONS)
            if conn.execute(_SHAPE).fetchone() == self._fresh_shape():
                if used := self._used(conn):
                    conn.execute(f"truncate {', '.join(used)} restart identity cascade")
                self._spare.append(name)
                return
        with psycopg.connect(self._server.dsn("owner", "postgres"), autocommit=True) as conn:
            conn.execute(f"drop database {name} with (force)")

    def _used(self, conn: psycopg.Connection[tuple[object, ...]]) -> list[str]:
        looks = (
            f"case when exists (select from {name}) then '{name}' end" for name in self._tables
        )
        row = conn.execute(
            f"select array_remove(array[{', '.join(looks)}]::text[], null)"
        ).fetchone()
        assert row is not None
        return [str(name) for name in row[0]]  # type: ignore[attr-defined]

    def _fresh_shape(self) -> object:
        if self._fresh is None:
            with psycopg.connect(self._server.dsn("owner", self._template)) as conn:
                self._fresh = conn.execute(_SHAPE).fetchone()
        return self._fresh


@pytest.fixture(scope="session")
def template_database(server: EmbeddedServer) -> str:
    """Name of a migrated, empty database that nobody connects to, to be copied."""
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {_TEMPLATE}")
    migrate(server.dsn("owner", _TEMPLATE))
    return _TEMPLATE


@pytest.fixture(scope="session")
def spare_databases(server: EmbeddedServer, template_database: str) -> SpareDatabases:
    """Copies of the template, emptied after each test and lent again."""
    return SpareDatabases(server, template_database)


@pytest.fixture
def database_name(spare_databases: SpareDatabases) -> Iterator[str]:
    """Name of a migrated, empty database of this test's own."""
    name = spare_databases.take()
    yield name
    spare_databases.give_back(name)


@pytest.fixture(scope="session")
def shared_database(server: EmbeddedServer, template_database: str) -> Iterator[Database]:
    """One migrated database for tests that leave nothing behind in it; saves a copy for each."""
    name = "kb_shared"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {template_database} strategy file_copy")
    with Database.embedded(server, dbname=name, application_name="kb test") as opened:
        yield opened


@pytest.fixture
def empty_database(server: EmbeddedServer) -> Iterator[str]:
    """Connection string of the owner to a database of this test's own, without any schema."""
    name = f"kb_empty_{next(_numbers)}"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name}")
        yield server.dsn("owner", name)
        conn.execute(f"drop database {name} with (force)")


@pytest.fixture
def database(server: EmbeddedServer, database_name: str) -> Iterator[Database]:
    """A migrated, empty database of this test's own, with pools for its three roles."""
    with Database.embedded(server, dbname=database_name, application_name="kb test") as opened:
        yield opened
