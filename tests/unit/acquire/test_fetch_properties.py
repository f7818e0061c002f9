"""What holds of every address, every compressed answer and every wait."""

from __future__ import annotations

import gzip
import zlib
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.acquire import FetchRefusal, canonical_url
from kb_resources.acquire.fetch_body import Inflater
from kb_resources.acquire.fetch_outcome import FetchStopped
from kb_resources.acquire.fetch_url import file_name, read_url
from kb_resources.acquire.robots import Robots
from kb_resources.stages.watch_outcome import LONGEST_WAIT_S, wait_s

_PIECES = st.lists(
    st.sampled_from(
        [
            *("http", "https", "file", ":", "//", "/", "?", "#", "@", "[", "]", "%", "%2f", "%2e"),
            *("..", ".", "example.org", "127.0.0.1", "::1", "0x7f", "xn--", "ä", "。", "１", "\\"),
            *(":80", ":8080", " ", "\t", "a", "-", "_", "user", "\u202e", "\x00"),
        ]
    ),
    max_size=14,
).map("".join)
URLS = st.one_of(
    st.text(max_size=40),
    _PIECES,
    st.builds("https://{}/{}".format, _PIECES, _PIECES),
    st.builds("http://example.org{}".format, _PIECES),
)


@given(URLS)
def test_every_address_is_refused_or_has_one_form_that_two_readers_agree_on(text: str) -> None:
    url = canonical_url(text)
    if isinstance(url, FetchRefusal):
        assert url.next_step
        return
    target = read_url(url)
    assert target.url == url
    assert url.isascii()
    assert url.isprintable()
    parts = urlsplit(url)
    assert (parts.hostname, parts.scheme) == (target.host, target.scheme)
    assert (parts.port or {"http": 80, "https": 443}[target.scheme]) == target.port
    assert parts.username is None
    assert not parts.fragment
    assert not {"..", "."} & set(parts.path.split("/"))
    name = file_name(target, "text/html")
    assert name
    assert "/" not in name


@given(
    data=st.binary(max_size=3000),
    kind=st.sampled_from(["gzip", "deflate", "bare"]),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=5),
)
def test_inflating_in_pieces_of_any_size_gives_the_whole(
    data: bytes, kind: str, sizes: list[int]
) -> None:
    packed = {
        "gzip": lambda: gzip.compress(data),
        "deflate": lambda: zlib.compress(data),
        "bare": lambda: zlib.compress(data, wbits=-15),
    }[kind]()
    inflate = Inflater("gzip" if kind == "gzip" else "deflate", 10_000, 10**9)
    out, at = b"", 0
    while at < len(packed):
        size = sizes[at % len(sizes)]
        try:
            out += b"".join(inflate.feed(packed[at : at + size]))
        except FetchStopped:
            assert kind == "bare"  # a bare stream that looks like zlib's head is damaged zlib
            return
        at += size
    assert inflate.is_whole
    assert out == data


@given(
    every_s=st.integers(60, 365 * 86_400),
    failures=st.integers(0, 200),
    chance=st.floats(0, 1),
    asked=st.none() | st.floats(0, 7 * 86_400),
)
def test_waits_are_bounded_and_never_shorter_than_asked(
    every_s: int, failures: int, chance: float, asked: float | None
) -> None:
    waits = wait_s(every_s, failures, lambda: chance, asked)
    if failures == 0:
        assert 0.949 * every_s <= waits <= 1.051 * every_s
        return
    assert waits >= (asked or 0)
    assert 30 <= waits <= max(LONGEST_WAIT_S, every_s, asked or 0)
    assert wait_s(every_s, failures + 1, lambda: chance, asked) >= waits


@pytest.mark.parametrize(
    ("rules", "url", "allowed"),
    [
        ("", "https://a.example/x", True),
        ("User-agent: *\nDisallow: /x", "https://a.example/x/y", False),
        ("User-agent: *\nDisallow: /\nAllow: /x", "https://a.example/x", True),
        ("User-agent: *\nDisallow: /*.pdf$", "https://a.example/a.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "https://a.example/a.pdf?x", True),
        ("User-agent: dagster-kb\nDisallow: /\n\nUser-agent: *\nAllow: /", "https://a.ex/", False),
        ("User-agent: other\nDisallow: /", "https://a.example/", True),
        ("\x00\xff nonsense \n::::", "https://a.example/", True),
    ],
)
def test_robots_rules_are_read_as_the_standard_says(rules: str, url: str, allowed: bool) -> None:
    assert Robots(rules).allows(url) is allowed


def test_a_crawl_delay_is_bounded() -> None:
    assert Robots("User-agent: *\nCrawl-delay: 100000").delay_s == 300
    assert Robots("User-agent: *\nCrawl-delay: -5").delay_s == 0
    assert Robots("").delay_s == 0
