"""A whole line over real parts: own database, own folders, the real model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kb.reader import Reader
from kb_resources import embed
from kb_resources.compose import open_line, open_retriever
from kb_resources.model import DocumentKey, Principal, Source, SourceKind
from kb_resources.retrieve import SearchResult
from kb_resources.settings import Settings
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

ROOT = Path(__file__).parents[3]


@dataclass
class Clock:
    """A clock that moves when told, one second a look, so that intervals are never empty."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The model cache that `make demo` uses too, filled once."""
    folder = ROOT / ".kb" / "models"
    embed.prepare(folder, embed.DEFAULT_MODEL)
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


@dataclass
class Bench:
    """One installation under test: a folder of sources, the line, the reader."""

    folder: Path
    settings: Settings
    line: Line
    reader: Reader
    clock: Clock
    counters: dict[str, int]

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def request(self, name: str, **values: object) -> IngestRequest:
        path = self.folder / name
        given: dict[str, object] = {"scope": "acme", "actor": "test", **values}
        return IngestRequest(source=Source(SourceKind.FILE, str(path), name), **given)  # type: ignore[arg-type]

    def ingest(self, name: str, text: str | bytes | None = None, **values: object) -> DocumentKey:
        if text is not None:
            self.write(name, text)
        key = self.line.register(self.request(name, **values))
        self.line.run_all([key])
        return key

    def state(self, key: DocumentKey) -> tuple[str, str]:
        row = self.line.rows([key])[0]
        return row.state, row.reason

    def search(self, query: str, **values: object) -> SearchResult:
        given: dict[str, object] = {
            "scope": "acme",
            "principal": Principal("test"),
            "k": 8,
            "mode": "hybrid",
            "as_of": None,
            "include_historical": False,
            **values,
        }
        return self.reader.search(query, **given)  # type: ignore[arg-type]

    def texts(self, query: str, **values: object) -> list[str]:
        return [hit.text for hit in self.search(query, **values).hits]


@pytest.fixture
def bench(settings: Settings, database: Database, tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "sources").mkdir()
    clock = Clock()
    counters: dict[str, int] = {}
    with ExitStack() as stack:
        line = stack.enter_context(
            open_line(settings, actor="test", counters=counters, clock=clock)
        )
        reader = Reader(database, open_retriever(settings, database))
        yield Bench(tmp_path / "sources", settings, line, reader, clock, counters)


MakeBench = Callable[[], Bench]
