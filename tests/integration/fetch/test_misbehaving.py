"""Servers that send too much, too slowly, badly packed or no whole answer: refused, and in time."""

from __future__ import annotations

import gzip
import threading
import zlib
from typing import TYPE_CHECKING

import pytest

from kb_resources.acquire import Fetched, FetchProblem
from tests.integration.fetch.conftest import PAGE, fetcher, refused

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import Asked, Site


@pytest.mark.requirement("P-49")
@pytest.mark.parametrize("announced", [True, False])
def test_a_page_over_the_limit_is_refused_while_it_comes(site: Site, announced: bool) -> None:
    sent = [0]

    def answer(asked: Asked) -> None:
        length = f"Content-Length: {10**9}\r\n" if announced else ""
        asked.send(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
        for _ in range(10_000):
            asked.send(b"x" * 10_000)
            sent[0] += 10_000

    site.routes["/"] = answer
    refused(fetcher(site, max_bytes=100_000).fetch(site.url()), FetchProblem.TOO_LARGE)
    assert sent[0] < 50_000_000


def test_a_page_of_exactly_the_limit_is_read(site: Site) -> None:
    site.routes["/"] = lambda asked: asked.reply(body=b"x" * 100_000)
    assert isinstance(fetcher(site, max_bytes=100_000).fetch(site.url()), Fetched)
    refused(fetcher(site, max_bytes=99_999).fetch(site.url()), FetchProblem.TOO_LARGE)


@pytest.mark.requirement("P-49")
def test_a_bomb_is_refused_after_little_of_it(site: Site) -> None:
    bomb = gzip.compress(b"\0" * 40_000_000)
    assert len(bomb) < 50_000
    site.routes["/"] = lambda asked: asked.reply(body=bomb, Content_Encoding="gzip")
    refused(fetcher(site).fetch(site.url()), FetchProblem.TOO_LARGE)
    refused(
        fetcher(site, max_bytes=10**6, max_ratio=10**9).fetch(site.url()), FetchProblem.TOO_LARGE
    )


@pytest.mark.parametrize(
    ("encoding", "body", "problem"),
    [
        ("br", b"x", FetchProblem.ENCODING),
        ("gzip, gzip", gzip.compress(gzip.compress(PAGE)), FetchProblem.ENCODING),
        ("gzip", b"this is no gzip", FetchProblem.ENCODING),
        ("gzip", gzip.compress(PAGE)[:-20], FetchProblem.CONNECTION),
        ("deflate", zlib.compress(PAGE)[:-8], FetchProblem.CONNECTION),
    ],
)
def test_what_cannot_be_unpacked_whole_is_refused(
    site: Site, encoding: str, body: bytes, problem: FetchProblem
) -> None:
    site.routes["/"] = lambda asked: asked.reply(body=body, Content_Encoding=encoding)
    refused(fetcher(site).fetch(site.url()), problem)


def dripping(asked: Asked, data: bytes) -> None:
    for byte in data:
        if asked.stopped.wait(0.05):
            return
        asked.send(bytes([byte]))


@pytest.mark.requirement("P-49")
@pytest.mark.parametrize("part", ["status", "headers", "body", "chunks"])
def test_a_byte_at_a_time_ends_at_the_deadline(site: Site, part: str) -> None:
    starts = {
        "status": b"",
        "headers": b"HTTP/1.1 200 OK\r\nX-Long: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n",
        "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    }

    whole = threading.Event()

    def answer(asked: Asked) -> None:
        asked.send(starts[part])
        data = b"1\r\nx\r\n" * 1000 if part == "chunks" else b"HTTP/1.1 " + b"y" * 5000
        dripping(asked, data)  # for minutes
        whole.set()

    site.routes["/"] = answer
    found = fetcher(site, timeout_s=0.6).fetch(site.url())
    assert not whole.is_set()
    assert refused(found, FetchProblem.TIMEOUT).retryable
    assert "longer than 0.6 s" in str(found)


def test_a_silent_server_is_given_up_before_the_deadline(site: Site) -> None:
    site.routes["/"] = lambda asked: asked.stopped.wait(600)
    found = fetcher(site, timeout_s=600, idle_s=0.3).fetch(site.url())
    assert "silent for 0.3 s" in refused(found, FetchProblem.TIMEOUT).reason


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        (b"", (FetchProblem.PROTOCOL, FetchProblem.CONNECTION)),
        (b"220 mail.example ESMTP\r\n", (FetchProblem.PROTOCOL,)),
        (b"\x00\xff\x13\x37" * 100, (FetchProblem.PROTOCOL,)),
        (b"HTTP/1.1 abc\r\n\r\n", (FetchProblem.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", (FetchProblem.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000 + b"\r\n\r\n", (FetchProblem.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", (FetchProblem.CONNECTION,)),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            (FetchProblem.PROTOCOL, FetchProblem.CONNECTION),
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
            (FetchProblem.PROTOCOL,),
        ),
        (b"HTTP/1.1 206 Partial\r\nContent-Length: 2\r\n\r\nab", (FetchProblem.PROTOCOL,)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (FetchProblem.PROTOCOL,)),
    ],
)
def test_what_is_no_whole_answer_is_refused(
    site: Site, raw: bytes, problems: tuple[FetchProblem, ...]
) -> None:
    site.routes["/"] = lambda asked: asked.send(raw)
    refused(fetcher(site).fetch(site.url()), *problems)


def test_endless_interim_answers_end(site: Site) -> None:
    def answer(asked: Asked) -> None:
        while not asked.stopped.is_set():
            asked.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    site.routes["/"] = answer
    found = fetcher(site, max_bytes=1000, timeout_s=3).fetch(site.url())
    refused(found, FetchProblem.TOO_LARGE, FetchProblem.TIMEOUT)
