"""One fetch of a page: all that is known about it, what did not change, and what a status means."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import TYPE_CHECKING

import pytest

from kb_resources.acquire import Fetched, Fetcher, FetchProblem, NotModified, Validators
from tests.integration.fetch.conftest import PAGE, fetcher, policy_for, refused

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import Asked, Site


def test_a_page_comes_with_all_that_is_known_about_it(site: Site) -> None:
    site.routes["/docs/leave"] = lambda asked: asked.reply(
        body=PAGE, Content_Type="text/HTML; charset=utf-8", ETag='"a1"', Last_Modified="yesterday"
    )
    found = fetcher(site).fetch(site.url("/docs/leave#part"))
    assert isinstance(found, Fetched)
    assert found.data == PAGE
    assert found.url == site.url("/docs/leave")
    assert (found.content_type, found.name, found.redirects) == ("text/html", "leave.html", 0)
    assert found.validators == Validators(site.url("/docs/leave"), '"a1"', "yesterday")
    headers = site.seen[0].headers
    assert headers["host"] == site.authority
    assert "dagster-kb" in headers["user-agent"]


@pytest.mark.requirement("P-71")
def test_a_page_that_did_not_change_is_not_sent_again(site: Site) -> None:
    def answer(asked: Asked) -> None:
        if asked.headers.get("if-none-match") == '"a1"':
            asked.reply("304 Not Modified", ETag='"a1"', Content_Length="-")
        else:
            asked.reply(body=PAGE, ETag='"a1"', Last_Modified="Mon, 30 Nov 2026 10:00:00 GMT")

    site.routes["/"] = answer
    asking = fetcher(site)
    first = asking.fetch(site.url())
    assert isinstance(first, Fetched)
    second = asking.fetch(site.url(), validators=first.validators)
    assert second == NotModified(first.validators)
    assert site.seen[1].headers["if-modified-since"] == "Mon, 30 Nov 2026 10:00:00 GMT"


def test_validators_are_sent_only_to_the_address_that_gave_them(site: Site) -> None:
    site.routes["/old"] = lambda asked: asked.reply("301 Moved", Location="/new")
    site.routes["/new"] = lambda asked: asked.reply(
        "304 Not Modified" if "if-none-match" in asked.headers else "200 OK", ETag='"n"'
    )
    asking = fetcher(site)
    first = asking.fetch(site.url("/old"))
    assert isinstance(first, Fetched)
    assert first.validators.url == site.url("/new")
    assert isinstance(asking.fetch(site.url("/old"), validators=first.validators), NotModified)
    assert ["if-none-match" in asked.headers for asked in site.seen] == [False, False, False, True]


def test_a_304_that_nobody_asked_for_is_refused(site: Site) -> None:
    site.routes["/"] = lambda asked: asked.reply("304 Not Modified", Content_Length="-")
    refused(fetcher(site).fetch(site.url()), FetchProblem.REDIRECT)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("gzip", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data, wbits=-15)),
        ("identity", bytes),
    ],
)
def test_compressed_pages_are_unpacked(site: Site, encoding: str, pack: object) -> None:
    # Text of little repetition and long enough to be inflated in several steps.
    page = random.Random(1).randbytes(300_000).hex().encode()
    site.routes["/"] = lambda asked: asked.reply(body=pack(page), Content_Encoding=encoding)  # type: ignore[operator]
    found = fetcher(site).fetch(site.url())
    assert isinstance(found, Fetched)
    assert found.data == page


@pytest.mark.requirement("P-71")
@pytest.mark.parametrize(
    ("status", "problem", "retryable"),
    [
        (404, FetchProblem.MISSING, False),
        (410, FetchProblem.MISSING, False),
        (401, FetchProblem.DENIED, False),
        (403, FetchProblem.DENIED, False),
        (418, FetchProblem.STATUS, False),
        (429, FetchProblem.BUSY, True),
        (500, FetchProblem.BUSY, True),
        (503, FetchProblem.BUSY, True),
        (599, FetchProblem.BUSY, True),
    ],
)
def test_a_status_has_one_meaning(
    site: Site, status: int, problem: FetchProblem, retryable: bool
) -> None:
    site.routes["/"] = lambda asked: asked.reply(f"{status} So", Retry_After="120")
    found = refused(fetcher(site).fetch(site.url()), problem)
    assert (found.status, found.retryable, found.retry_after_s) == (status, retryable, 120.0)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("Thu, 01 Jan 1970 00:10:00 GMT", 100.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("9" * 40, 7 * 86_400.0),
        ("²", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(
    site: Site, written: str, seconds: float | None
) -> None:
    header = written.encode().decode("latin-1")
    site.routes["/"] = lambda asked: asked.reply("503 Busy", Retry_After=header)
    asking = Fetcher(policy_for(site), now=lambda: 500.0)
    assert refused(asking.fetch(site.url()), FetchProblem.BUSY).retry_after_s == seconds


def test_nothing_stays_open(site: Site, recwarn: pytest.WarningsRecorder) -> None:
    import gc

    site.routes["/"] = lambda asked: asked.reply(body=PAGE)
    site.routes["/cut"] = lambda asked: asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
    asking = fetcher(site)
    for path in ("/", "/cut", "/missing"):
        asking.fetch(site.url(path))
    gc.collect()
    assert not [w for w in recwarn if issubclass(w.category, ResourceWarning)]
