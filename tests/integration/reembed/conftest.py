"""An installation with two models: the default one, and one that needs no files.

Belongs here: what the tests of generations share. What does not: the line's own bench.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kb_resources import embed
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.settings import Settings
from kb_resources.stages import reembed
from kb_resources.stages.fill import Filled
from kb_resources.store import generations
from kb_resources.store.generations import Generation
from kb_resources.store.server import EmbeddedServer
from tests.integration.embed.fake_server import FakeServer, running
from tests.integration.line.conftest import ROOT, Bench, bench

__all__ = ["bench"]
LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave.\n"
TRAVEL = "# Travel\n\nJourneys by rail are booked in second class, flights only beyond 800 km.\n"
OFFICE = "# Office\n\nThe office is closed on public holidays and between the years.\n"
OTHER = "hashing"
SERVED = "bge-m3"


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    """A cache of this test's own; the default model in it is the one that all tests share."""
    shared = ROOT / ".kb" / "models"
    embed.prepare(shared, embed.DEFAULT_MODEL)
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / embed.DEFAULT_MODEL).symlink_to(shared / embed.DEFAULT_MODEL)
    return folder


@pytest.fixture
def settings(
    server: EmbeddedServer, database_name: str, tmp_path: Path, models_dir: Path
) -> Settings:
    return Settings(
        home=tmp_path / "home",
        database_url=server.dsn("owner", database_name),
        pipeline_database_url=server.dsn("pipeline", database_name),
        app_database_url=server.dsn("app", database_name),
        models_dir=models_dir,
        blob_url=str(tmp_path / "blobs"),
    )


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A server that embeds by hashed words, at the size of the model it plays."""

    def vectors(texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = HashingEmbedder(1024).embed(texts, "passage").tolist()
        return rows

    with running(FakeServer(vectors=vectors)) as server:
        yield server


def held(bench: Bench, scope: str = "acme") -> Generation:
    """The scope's generation."""
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        found = generations.of_scope(conn, scope)
    assert found is not None
    return found


def counted(bench: Bench, model_id: str, scope: str = "acme") -> tuple[int, int]:
    """Passages of the scope, and those with a vector by the model."""
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        row = conn.execute(
            "select count(*), count(e.vec) from kb.passage p join kb.scope s using (scope_id) "
            "left join (kb.embedding e join kb.model m on m.model_key = e.model_key "
            "  and m.model_id = %s) using (passage_key) where s.name = %s",
            [model_id, scope],
        ).fetchone()
    assert row is not None
    return row[0], row[1]


def move(bench: Bench, model: str = OTHER, scope: str = "acme") -> str:
    """Start, fill and swap; returns the identity of the new live model."""
    caps = bench.line.capabilities
    started = reembed.start(caps, scope, model, actor="test")
    done = reembed.fill_scope(caps, scope)
    assert not done.failed
    reembed.swap(caps, scope, actor="test")
    assert started.beside is not None
    return started.beside


def filled(bench: Bench, scope: str = "acme") -> Filled:
    return reembed.fill_scope(bench.line.capabilities, scope)


@pytest.fixture
def library(bench: Bench) -> Bench:
    for name, text in {"leave.md": LEAVE, "travel.md": TRAVEL}.items():
        bench.ingest(name, text)
    return bench
