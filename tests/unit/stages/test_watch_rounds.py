"""A round over hosts: one that breaks in an unforeseen way costs the others nothing."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal
from kb_resources.stages.watch_rounds import Answer, HostAnswer, Manners, PageAnswer, ask_all
from kb_resources.store.watches import Claim, HostRow, WatchedPage

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOSTS = ["https://a.example", "https://b.example", "https://c.example"]
GONE = FetchRefusal(FetchProblem.MISSING, "Gone.", "Look elsewhere.", status=404)


def claim_of(pages: int) -> Claim:
    rows = [HostRow(host, "", NOW.replace(year=2030)) for host in HOSTS]
    claimed = [
        WatchedPage(
            page_key=number, watch_id="w", scope="acme", scope_id=1, url=f"{host}/{number}",
            host=host, document_id=None, state="new", final_url=None, etag=None,
            last_modified=None, digest=None, text_digest=None, failures=0, missing=0, audiences=[],
            language=None, every_s=60, on_missing="keep", remove_after=3,
        )
        for host in HOSTS
        for number in range(pages)
    ]  # fmt: skip
    return Claim(rows, claimed, [])


def manners(workers: int) -> Manners:
    return Manners(0.0, workers, 1.0, lambda: 0.0, lambda _: None, lambda: NOW)


@pytest.mark.requirement("P-71")
@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_at_one_host_is_raised_once_the_others_have_answered(workers: int) -> None:
    def fetch(url: str, **_: Any) -> FetchRefusal:
        if url.startswith(HOSTS[0]):
            raise RuntimeError("no such case")
        return GONE

    told: list[Answer] = []
    with pytest.raises(RuntimeError, match="no such case"):
        told.extend(ask_all(claim_of(4), fetch, manners(workers)))
    assert {a.host for a in told if isinstance(a, HostAnswer)} == set(HOSTS[1:])
    assert len([a for a in told if isinstance(a, PageAnswer)]) == 8


def test_nothing_more_is_asked_once_the_answers_are_closed() -> None:
    asked: list[str] = []
    lock = threading.Lock()

    def fetch(url: str, **_: Any) -> FetchRefusal:
        with lock:
            asked.append(url)
        return GONE

    with closing(ask_all(claim_of(1000), fetch, manners(1))) as answers:
        next(answers)
    count = len(asked)
    assert count < 100, "a few answers may wait, and one is in the making"
    assert not [t for t in threading.enumerate() if t.name.startswith("kb-watch")]
