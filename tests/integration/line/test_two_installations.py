"""Two installations on one server: a database each, the server's two roles shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from kb.doctor import servers
from kb.reader import Reader
from kb_resources.compose import open_line, open_retriever
from kb_resources.store.pool import Database
from tests.integration.line.conftest import Bench, Clock

if TYPE_CHECKING:
    from kb_resources.store.server import EmbeddedServer
    from tests.conftest import SpareDatabases

OURS = "# Keys\n\nThe keys of the large hall hang beside the green door of the office.\n"
THEIRS = "# Keys\n\nThe keys of the small hall lie in the drawer of the caretaker.\n"


@pytest.fixture
def other(bench: Bench, server: EmbeddedServer, spare_databases: SpareDatabases) -> Iterator[Bench]:
    """A second installation, of which only the server is that of the first."""
    name = spare_databases.take()
    home = bench.settings.home.with_name("other")
    settings = replace(
        bench.settings, home=home, blob_url=str(home / "blobs"),
        database_url=server.dsn("owner", name), pipeline_database_url=server.dsn("pipeline", name),
        app_database_url=server.dsn("app", name),
    )  # fmt: skip
    sources = home.with_name("other-sources")
    clock = Clock()
    with (
        Database.embedded(server, dbname=name) as database,
        open_line(settings, actor="test", clock=clock) as line,
    ):
        reader = Reader(database, open_retriever(settings, database))
        yield Bench(sources, settings, line, reader, clock, {})
    spare_databases.give_back(name)


@pytest.mark.requirement("P-62")
def test_two_installations_share_a_server_and_nothing_else(bench: Bench, other: Bench) -> None:
    ours = bench.ingest("keys.md", OURS)
    other.ingest("keys.md", THEIRS)
    for side, there, elsewhere in ((bench, "green", "drawer"), (other, "drawer", "green")):
        (found,) = side.texts("Where are the keys of the hall?")
        assert there in found
        assert elsewhere not in found
    with bench.line.capabilities.database.transaction("pipeline") as held:
        # Locks are a database's own: who waits for one here does not wait for the other.
        held.execute("select pg_advisory_xact_lock(1)")
        with other.line.capabilities.database.transaction("pipeline") as conn:
            assert conn.execute("select pg_try_advisory_xact_lock(1)").fetchone() == (True,)
    other.ingest("keys.md", THEIRS.replace("drawer", "cupboard"))
    assert "green" in bench.texts("Where are the keys of the hall?")[0]
    (history,) = bench.line.rows([ours])
    assert history.latest_version == 1


@pytest.mark.requirement("P-62")
def test_a_second_installation_on_the_first_ones_database_is_told(
    bench: Bench, other: Bench
) -> None:
    bench.ingest("keys.md", OURS)
    assert [f for f in servers.database(bench.settings) if f.about == "blobs"] == []
    lost = replace(other.settings, database_url=bench.settings.database_url)
    (found,) = [f for f in servers.database(lost) if f.about == "blobs"]
    assert found.level == "problem"
    assert "a database of its own" in found.fix


@pytest.mark.requirement("P-62")
def test_what_is_kept_from_connecting_does_not_get_in(
    bench: Bench, other: Bench, server: EmbeddedServer
) -> None:
    """The two roles are the server's: who may open which database is granted for each of them."""
    name = psycopg.conninfo.conninfo_to_dict(other.settings.database_url)["dbname"]
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(
            f"create role only_theirs login in role kb_app; revoke connect on database "
            f"{name} from public; grant connect on database {name} to only_theirs"
        )
        try:
            with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
                psycopg.connect(other.settings.app_database_url)
            psycopg.connect(bench.settings.app_database_url).close()
        finally:
            conn.execute(
                f"revoke connect on database {name} from only_theirs; "
                f"grant connect on database {name} to public; drop role only_theirs"
            )
