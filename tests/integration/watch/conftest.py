"""Watches over a real line and a real site, with a clock and a chance of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from kb.reader import Reader
from kb_resources import embed
from kb_resources.acquire import FetchPolicy
from kb_resources.compose import fetch_policy, open_line, open_retriever
from kb_resources.model import DocumentKey
from kb_resources.settings import Settings
from kb_resources.stages import watch
from kb_resources.stages.watch import WatchRequest
from kb_resources.stages.watch_check import CheckOptions, CheckReport, check_due
from kb_resources.store.pool import Database
from kb_resources.store.watches import WatchRow
from tests.integration.fetch.conftest import (  # noqa: F401 - fixtures
    Asked,
    OpenSite,
    Site,
    open_site,
    site,
)
from tests.integration.line.conftest import Bench, Clock, models_dir, settings  # noqa: F401

ARTICLE = """<!doctype html><html lang="en"><head><title>{title}</title>
<meta name="author" content="Ada Byron"><meta property="og:site_name" content="The Gazette">
<meta property="article:published_time" content="2026-02-03">
<script nonce="{nonce}">let a = "{nonce}"</script></head><body>
<div class="cookie-banner">We use {nonce} cookies.</div><nav><a href="/">Home</a></nav>
<article><h1>{title}</h1><p>{text}</p></article><footer>Page made at {nonce}.</footer>
<input type="hidden" name="csrf" value="{nonce}"></body></html>"""
THIRTY = "Every employee has thirty days of paid annual leave in a calendar year."
FORTY = "Every employee has forty days of paid annual leave in a calendar year."


@dataclass
class Wall:
    """A wall clock that only a test moves."""

    now: datetime = field(default_factory=lambda: datetime(2026, 6, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **duration: float) -> None:
        self.now += timedelta(**duration)


@dataclass
class Watching:
    """An installation that watches a site."""

    bench: Bench
    site: Site
    wall: Wall
    policy: FetchPolicy
    slept: list[float] = field(default_factory=list)
    ticks: float = 0.0

    def page(
        self, path: str, text: str, *, title: str = "Leave", nonce: str = "n0", **h: str
    ) -> None:
        body = ARTICLE.format(title=title, text=text, nonce=nonce).encode()
        self.site.routes[path] = lambda asked: asked.reply(body=body, Content_Type="text/html", **h)

    def tagged(self, path: str, text: str, etag: str) -> None:
        """A page that honours If-None-Match."""
        body = ARTICLE.format(title="Leave", text=text, nonce=etag).encode()

        def answer(asked: Asked) -> None:
            if asked.headers.get("if-none-match") == etag:
                asked.reply("304 Not Modified", ETag=etag, Content_Length="-")
            else:
                asked.reply(body=body, ETag=etag, Content_Type="text/html")

        self.site.routes[path] = answer

    def gone(self, path: str, status: str = "404 Not Found") -> None:
        self.site.routes[path] = lambda asked: asked.reply(status)

    def watch(self, path: str, **values: object) -> WatchRow:
        given: dict[str, object] = {"scope": "acme", "every_s": 3600, "actor": "test", **values}
        return watch.add(
            self.bench.line.capabilities.database,
            WatchRequest(url=self.site.url(path), **given),  # type: ignore[arg-type]
            policy=self.policy,
            languages=self.bench.settings.languages,
            now=self.wall(),
        )

    def _monotonic(self) -> float:
        return self.ticks

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ticks += seconds

    def options(self, **values: object) -> CheckOptions:
        return replace(
            CheckOptions(
                delay_s=0.0,
                clock=self.wall,
                chance=lambda: 0.5,
                monotonic=self._monotonic,
                sleep=self._sleep,
            ),
            **values,
        )

    def check(self, **values: object) -> CheckReport:
        """One look, without the line."""
        fetcher = self.bench.line.capabilities.fetcher
        assert fetcher is not None
        return check_due(self.bench.line, fetcher.fetch, self.options(**values))

    def round(self, **values: object) -> CheckReport:
        """One look, and what changed through the line."""
        report = self.check(**values)
        self.bench.line.run_all(list(report.keys))
        return report

    def asked(self, path: str) -> int:
        return sum(asked.path == path for asked in self.site.seen)

    def versions(self, key: DocumentKey) -> list[int]:
        with self.bench.line.capabilities.database.transaction("pipeline") as conn:
            rows = conn.execute(
                "select v.version from kb.version v join kb.document d using (document_key) "
                "where d.document_id = %s order by 1",
                [key.document_id],
            ).fetchall()
        return [row[0] for row in rows]

    def rows(self, row: WatchRow) -> list[dict[str, object]]:
        database = self.bench.line.capabilities.database
        return watch.show(database, row.watch_id, row.scope)[1]


def only_key(keys: dict[DocumentKey, None]) -> DocumentKey:
    (key,) = keys
    return key


load_once = cache(embed.load)
"""The model, which is the same for all tests here, loaded by the first that needs it."""


@pytest.fixture
def watching(
    settings: Settings,  # noqa: F811
    database: Database,
    tmp_path: Path,
    site: Site,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Watching]:
    monkeypatch.setattr(embed, "load", load_once)
    settings = replace(settings, fetch_allow_hosts=(site.authority,), fetch_timeout_s=10.0)
    (tmp_path / "sources").mkdir()
    counters: dict[str, int] = {}
    clock = Clock()
    with ExitStack() as stack:
        line = stack.enter_context(
            open_line(settings, actor="test", counters=counters, clock=clock)
        )
        reader = Reader(database, open_retriever(settings, database))
        bench = Bench(tmp_path / "sources", settings, line, reader, clock, counters)
        yield Watching(bench, site, Wall(), fetch_policy(settings))
