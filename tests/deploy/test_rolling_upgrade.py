"""A rolling upgrade: what runs already goes on while the next release migrates around it.

The next release has two more files that do what such files may: make tables and functions, add
columns, build an index without a lock. A lock that the test holds keeps the migration in its
middle, so that what happens meanwhile does not depend on speed.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kb import KnowledgeBase
from kb_resources.compose import open_line
from kb_resources.model import DocumentKey, Source, SourceKind
from kb_resources.settings import Settings
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest
from kb_resources.store.migrate import migrate
from kb_resources.store.migration_files import MIGRATIONS
from kb_resources.store.server import EmbeddedServer

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0
MIDDLE = 4711
TABLES = f"""\
create table kb.next_release (x int primary key);
create function kb.next_release() returns int language sql as 'select 1';
select pg_advisory_xact_lock({MIDDLE});
alter table kb.version add column next_release text;
"""
INDEX = """\
-- no-transaction
create index concurrently if not exists next_release_passages on kb.passage (scope_id, token_count);
"""
TEXT = "# Lockers\n\nEmpty lockers are reopened by the porter every Friday at {n}.\n"


@pytest.fixture
def settings(server: EmbeddedServer, database_name: str, tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path / "home",
        database_url=server.dsn("owner", database_name),
        pipeline_database_url=server.dsn("pipeline", database_name),
        app_database_url=server.dsn("app", database_name),
        models_dir=ROOT / ".kb" / "models",
        blob_url=str(tmp_path / "blobs"),
    )


@pytest.fixture
def line(settings: Settings) -> Iterator[Line]:
    with open_line(settings, actor="test") as opened:
        yield opened


@pytest.fixture
def next_release(tmp_path: Path) -> Path:
    """This release's migrations and two more."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder)
    (folder / "9001_next_tables.sql").write_text(TABLES)
    (folder / "9002_next_index.sql").write_text(INDEX)
    return folder


def ingest(line: Line, folder: Path, name: str) -> str:
    path = folder / name
    path.write_text(TEXT.format(n=name))
    source = Source(SourceKind.FILE, str(path), name)
    key: DocumentKey = line.register(IngestRequest(scope="acme", source=source, actor="test"))
    line.run_all([key])
    [row] = line.rows([key])
    return str(row.state)


class Reader(threading.Thread):
    """Searches until it is told to stop; every search has to find something."""

    def __init__(self, kb: KnowledgeBase) -> None:
        super().__init__(daemon=True)
        self.kb = kb
        self.stop = threading.Event()
        self.found = threading.Semaphore(0)
        self.problems: list[str] = []

    def run(self) -> None:
        while not self.stop.is_set() and not self.problems:
            try:
                hits = self.kb.search("lockers porter", scope="acme", mode="text").hits
            except Exception as error:  # noqa: BLE001 - whatever it is, the test says it
                self.problems.append(repr(error))
            else:
                if not hits:
                    self.problems.append("nothing was found")
            self.found.release()

    def goes_on(self, times: int = 5) -> None:
        """Wait for so many more searches."""
        for _ in range(times):
            assert self.found.acquire(timeout=WAIT_S), "the reader stands still"
        assert self.problems == []


@pytest.mark.requirement("O-33", "P-57")
def test_readers_and_the_pipeline_of_a_release_go_on_while_the_next_one_migrates(
    settings: Settings, line: Line, next_release: Path, tmp_path: Path
) -> None:
    assert ingest(line, tmp_path, "one.md") == "indexed"
    applied: list[str] = []
    with KnowledgeBase(settings) as kb, psycopg.connect(settings.database_url) as middle:
        reader = Reader(kb)
        reader.start()
        reader.goes_on()
        middle.execute("select pg_advisory_lock(%s)", [MIDDLE])
        middle.commit()

        def upgrade() -> None:
            done = migrate(settings.database_url, folder=next_release, wait_s=WAIT_S)
            applied.extend(each.label for each in done)

        upgrading = threading.Thread(target=upgrade)
        upgrading.start()
        in_the_middle(middle)
        reader.goes_on()
        assert ingest(line, tmp_path, "two.md") == "indexed"
        assert applied == []
        middle.execute("select pg_advisory_unlock(%s)", [MIDDLE])
        middle.commit()
        upgrading.join(WAIT_S)
        assert applied == ["9001_next_tables", "9002_next_index"]
        reader.goes_on()
        assert ingest(line, tmp_path, "three.md") == "indexed"
        reader.stop.set()
        reader.join(WAIT_S)
        assert reader.problems == []
        assert len(kb.search("lockers porter", scope="acme", mode="text").hits) == 3


def in_the_middle(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    """Wait until the migration waits for the lock that the test holds."""
    query = (
        "select count(*) from pg_locks where locktype = 'advisory' and not granted "
        "and objid = %s and database = (select oid from pg_database "
        "where datname = current_database())"
    )
    waited = threading.Event()
    for _ in range(int(WAIT_S / 0.05)):
        row = conn.execute(query, [MIDDLE]).fetchone()
        conn.rollback()
        if row == (1,):
            return
        waited.wait(0.05)
    raise AssertionError("the migration never came to its middle")
