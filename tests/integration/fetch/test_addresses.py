"""Addresses that must never be connected to, in every spelling, and those that may."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.acquire import Fetcher, FetchPolicy, FetchProblem, FetchRefusal
from kb_resources.acquire.fetch_address import Reach, reach
from kb_resources.acquire.fetch_url import canonical_url

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import Site


def words(text: str) -> list[str]:
    return text.split()


V4 = words("""
0.0.0.0 0.255.255.255 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 127.255.255.254
169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.8 192.0.2.1 192.88.99.1
192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1
239.255.255.255 240.0.0.1 255.255.255.255
""")
V6 = words("""
:: ::1 fc00::1 fdff::1 fe80::1 febf::1 fec0::1 ff00::1 ff02::1 2001:db8::1 100::1 64:ff9b:1::1
2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 3fff::1 5f00::1 4000::1
""")
SPELLINGS = words("""
2130706433 017700000001 0177.0.0.1 0177.0.0.01 0x7f.1 0x7f.0x0.0x0.0x1 0x7F000001 127.1 127.0.1 0
127.0.0.1. 127.0.0.1.. 127.0.0.01 localhost LOCALHOST localhost. foo.localhost
１２７.０.０.１ 127。0。0。1 １２７．１ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ 127%2e0%2e0%2e1 %6c%6f%63alhost
3232235521 0xC0A80001 1.0x7f 0x
""")
ODD = words("""
file:///etc/passwd ftp://8.8.8.8/ gopher://8.8.8.8/ data:text/html,hello jar:http://8.8.8.8/!/
http://user:password@8.8.8.8/ http://user@8.8.8.8/ http://:@8.8.8.8/ http://8.8.8.8:22/
http://8.8.8.8:6379/ http://8.8.8.8:0/ http://8.8.8.8:99999/ http://8.8.8.8:8x/ http:// http:///path
//8.8.8.8/ 8.8.8.8 javascript:alert(1) http://8.8.8.8\\@127.0.0.1/ http://[fe80::1%25en0]/
http://[fe80::1%en0]/ http://[::1 http://::1/ http://[v1.fe80]/ http://a..b/ http://-a.b/
http://straße.example/ http://%00/ http://a_b%2ec/
""")


def embedding(address: str) -> list[str]:
    """IPv6 forms that carry an IPv4 address."""
    number = int(IPv4Address(address))
    hexadecimal = f"{number >> 16:x}:{number & 0xFFFF:X}"
    return [
        f"::ffff:{address}",
        f"::FFFF:{hexadecimal}",
        f"0:0:0:0:0:ffff:{hexadecimal}",
        f"::{address}",
        f"64:ff9b::{address}",
        f"2002:{hexadecimal}::",
        f"2002:{hexadecimal}::1",
        f"::ffff:0:{address}",
        f"2a00:1450::5efe:{address}",
    ]


REFUSED = [
    *(f"http://{address}/" for address in V4),
    *(f"https://[{address}]/" for address in V6),
    *(f"http://[{form}]/" for address in V4 for form in embedding(address)),
    *(f"http://{spelling}/" for spelling in SPELLINGS),
    *ODD,
    *(
        "http://8.8.8.8/\x00",
        "http://8.8.8.8/a b",
        "http://127.0.0.1\t/",
        "http://8.8.8.8/\r\nX: y",
    ),
    *("", " ", "http://" + "a" * 5000 + ".example/"),
]


class Counted:
    """Stands where connections are made: notes each address asked for, and lets none through."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    def __call__(self, address: str, _port: int, _timeout_s: float) -> socket.socket:
        self.addresses.append(address)
        raise OSError("nobody is connected to in this test")


def nobody(host: str, port: int) -> list[str]:
    """DNS that points every name at this machine."""
    return ["127.0.0.1"]


@pytest.mark.requirement("P-49", "P-50")
@pytest.mark.parametrize("url", REFUSED)
def test_it_is_refused_before_a_connection(url: str) -> None:
    counted = Counted()
    fetcher = Fetcher(resolver=nobody, connector=counted)
    found = fetcher.fetch(url)
    assert isinstance(found, FetchRefusal)
    assert found.problem in {FetchProblem.URL, FetchProblem.ADDRESS}
    assert found.next_step
    assert not found.retryable
    assert counted.addresses == []


@pytest.mark.requirement("P-49")
def test_a_redirect_to_any_of_them_is_refused_too(site: Site) -> None:
    """Those that a server can write into a header and that do not lead back to itself."""
    urls = [url for url in REFUSED if re.match(r"\w+:/?/?[^/]", url) and url.isprintable()]
    urls += ["http://10.0.0.1:80/", "http://[::1]:80/", "//127.1/", "//[::1]/"]
    assert len(urls) > 300
    reached: list[str] = []

    def connector(address: str, port: int, timeout_s: float) -> socket.socket:
        reached.append(f"{address}:{port}")
        return socket.create_connection((address, port), timeout_s)

    policy = FetchPolicy(allow_hosts=frozenset({site.authority}), timeout_s=5)
    fetcher = Fetcher(policy, resolver=nobody, connector=connector)
    for number, url in enumerate(urls, 1):
        location = url.encode().decode("latin-1")
        site.routes["/"] = lambda asked, to=location: asked.reply("302 Found", Location=to)
        found = fetcher.fetch(site.url())
        assert isinstance(found, FetchRefusal), url
        assert found.problem in {FetchProblem.URL, FetchProblem.ADDRESS}, (url, found)
        assert len(reached) == number, url
    assert set(reached) == {site.authority}


@pytest.mark.requirement("P-49")
@pytest.mark.parametrize(
    "url",
    [
        *("http://8.8.8.8/", "https://1.1.1.1/a?b=c", "http://8.8.8.8:80/", "http://8.8.8.8./"),
        *("http://[2606:4700::1111]/", "http://[::ffff:8.8.8.8]/", "http://[64:ff9b::8.8.8.8]/"),
        *("http://[2002:808:808::1]/", "https://bücher.example/", "https://пример.example/п"),
        *("HTTP://Example.COM/", "http://example.com./", "http://_dmarc.example/"),
    ],
)
def test_public_addresses_are_connected_to(url: str) -> None:
    counted = Counted()
    found = Fetcher(resolver=lambda _host, _port: ["93.184.216.34"], connector=counted).fetch(url)
    assert len(counted.addresses) == 1
    assert isinstance(found, FetchRefusal)
    assert found.problem is FetchProblem.CONNECTION
    assert found.retryable


@pytest.mark.requirement("P-49")
def test_five_hundred_names_that_change_their_answer_are_never_followed(site: Site) -> None:
    """A name is resolved once and the checked address is used, whatever it says a moment later."""
    site.routes["/"] = lambda asked: asked.reply(body=b"secret")
    counted = Counted()
    asked = [0]

    def changing(host: str, port: int) -> list[str]:
        asked[0] += 1
        return ["93.184.216.34"] if asked[0] % 2 else ["127.0.0.1"]

    fetcher = Fetcher(resolver=changing, connector=counted)
    for number in range(500):
        found = fetcher.fetch(f"http://r{number}.example/")
        assert isinstance(found, FetchRefusal)
        expected = FetchProblem.ADDRESS if number % 2 else FetchProblem.CONNECTION
        assert found.problem is expected
    assert asked[0] == 500, "each name is resolved exactly once"
    assert set(counted.addresses) == {"93.184.216.34"}
    assert site.connections == 0


@pytest.mark.requirement("P-49")
@pytest.mark.parametrize(
    "answers",
    [
        ["93.184.216.34", "10.0.0.1"],
        ["10.0.0.1", "93.184.216.34"],
        ["93.184.216.34", "::1"],
        ["2606:4700::1111", "fe80::1%eth0"],
        ["93.184.216.34", "::ffff:169.254.169.254"],
        ["not an address"],
    ],
)
def test_one_private_answer_among_public_ones_refuses_the_name(answers: list[str]) -> None:
    counted = Counted()
    found = Fetcher(resolver=lambda _h, _p: answers, connector=counted).fetch("http://a.example/")
    assert isinstance(found, FetchRefusal)
    assert found.problem is FetchProblem.ADDRESS
    assert counted.addresses == []


@pytest.mark.requirement("P-49")
def test_a_failing_name_is_told_from_a_refused_address() -> None:
    def failing(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    for resolver in (failing, lambda _h, _p: []):
        found = Fetcher(resolver=resolver, connector=Counted()).fetch("http://a.example/")
        assert isinstance(found, FetchRefusal)
        assert found.problem is FetchProblem.DNS
        assert found.retryable


def test_a_name_server_that_never_answers_ends_in_time() -> None:
    import threading

    over = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        over.wait(10)
        return []

    policy = FetchPolicy(timeout_s=0.2, connect_s=0.2)
    found = Fetcher(policy, resolver=slow).fetch("http://a.example/")
    over.set()
    assert isinstance(found, FetchRefusal)
    assert found.problem is FetchProblem.DNS


@pytest.mark.requirement("P-50")
@pytest.mark.parametrize(
    ("opened", "url", "answer", "connects"),
    [
        ("intranet.example", "http://intranet.example/", "10.1.2.3", True),
        ("intranet.example", "https://intranet.example/", "192.168.1.1", True),
        ("intranet.example", "http://intranet.example:8080/", "10.1.2.3", False),
        ("intranet.example:8080", "http://intranet.example:8080/", "10.1.2.3", True),
        ("intranet.example:8080", "http://intranet.example/", "10.1.2.3", False),
        ("intranet.example", "http://other.example/", "10.1.2.3", False),
        ("intranet.example", "http://sub.intranet.example/", "10.1.2.3", False),
        ("intranet.example", "http://intranet.example/", "169.254.169.254", False),
        ("intranet.example", "http://intranet.example/", "224.0.0.1", False),
        ("intranet.example", "http://intranet.example/", "0.0.0.0", False),
        ("169.254.169.254", "http://169.254.169.254/", "169.254.169.254", False),
    ],
)
def test_an_opened_host_is_opened_alone_and_never_for_link_local(
    opened: str, url: str, answer: str, connects: bool
) -> None:
    counted = Counted()
    policy = FetchPolicy(allow_hosts=frozenset({opened}))
    Fetcher(policy, resolver=lambda _h, _p: [answer], connector=counted).fetch(url)
    assert counted.addresses == ([answer] if connects else [])


def test_plain_http_is_refused_where_only_https_is_allowed() -> None:
    counted = Counted()
    fetcher = Fetcher(FetchPolicy(https_only=True), resolver=nobody, connector=counted)
    found = fetcher.fetch("http://8.8.8.8/")
    assert isinstance(found, FetchRefusal)
    assert found.problem is FetchProblem.URL
    assert counted.addresses == []


@given(st.ip_addresses(v=4))
def test_an_ipv6_form_leads_where_its_ipv4_address_does(address: IPv4Address) -> None:
    number = int(address)
    assert reach(IPv6Address(0xFFFF << 32 | number)) is reach(address)
    assert reach(IPv6Address(0x64FF9B << 96 | number)) is reach(address)
    assert reach(IPv6Address(0x2002 << 112 | number << 80)) is reach(address)
    assert reach(IPv6Address(number)) is not Reach.PUBLIC


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_is_public(address: IPv4Address | IPv6Address) -> None:
    carries = isinstance(address, IPv6Address) and (address.ipv4_mapped or address.sixtofour)
    if not address.is_global and not carries:
        assert reach(address) is not Reach.PUBLIC


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com:443/a/../b/./c#part", "https://example.com/b/c"),
        ("https://example.com/a/%2e%2e/b", "https://example.com/b"),
        ("https://example.com/straße?q=ä", "https://example.com/stra%C3%9Fe?q=%C3%A4"),
        ("https://bücher.example./", "https://xn--bcher-kva.example/"),
        ("http://[2606:4700::0:1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("https://example.com/a//b/", "https://example.com/a//b/"),
        ("https://example.com/..", "https://example.com/"),
    ],
)
def test_an_address_has_one_canonical_form(written: str, canonical: str) -> None:
    assert canonical_url(written) == canonical
    assert canonical_url(canonical) == canonical


def test_no_public_address_of_the_lists_is_private() -> None:
    for text in ("8.8.8.8", "1.1.1.1", "2606:4700::1111", "9.255.255.255", "172.32.0.1"):
        assert reach(ip_address(text)) is Reach.PUBLIC
