"""Sitemaps and feeds: the pages they name, within limits, and nothing else."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from kb_resources.acquire.expand import Listing, read_listing
from kb_resources.acquire.fetch_outcome import FetchRefusal

if TYPE_CHECKING:
    from tests.integration.watch.conftest import Watching

SITE = "https://example.org/sitemap.xml"
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
TEXT = "Every employee reads page {0} on the first working day of the year and signs for it."


def sitemap(*urls: str, changed: str = "") -> bytes:
    date = f"<lastmod>{changed}</lastmod>" if changed else ""
    inner = "".join(f"<url><loc>{url}</loc>{date}</url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="{NS}">{inner}</urlset>'.encode()


def index(*urls: str) -> bytes:
    inner = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<sitemapindex xmlns="{NS}">{inner}</sitemapindex>'.encode()


RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
<link>https://example.org/</link>
<item><title>A</title><link> https://example.org/a </link><pubDate>Mon, 1 Jun 2026</pubDate></item>
<item><title>B</title><guid>https://example.org/b</guid></item>
<item><title>C</title><guid isPermaLink="false">https://example.org/c</guid></item>
<item><link>https://elsewhere.example/d?x=1&amp;y=2#top</link></item>
<item><link>/relative</link></item><item><link>mailto:a@b.example</link></item>
</channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="/feed"/>
<entry><link rel="edit" href="/edit"/><link rel="alternate" href="/e1"/>
<updated>2026-06-01</updated></entry><entry><link href="https://example.org/e2"/></entry><entry><title>none</title></entry></feed>"""
RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
xmlns="http://purl.org/rss/1.0/"><channel/><item><link>https://example.org/r</link></item></rdf:RDF>"""


def pages(data: bytes, url: str = SITE, **values: int) -> list[str]:
    found = read_listing(data, url, **values)
    assert isinstance(found, Listing), found
    return [page.url for page in found.pages]


def test_a_sitemap_names_pages_of_its_own_site_alone() -> None:
    data = sitemap(
        "https://example.org/a",
        "https://EXAMPLE.org/b#x",
        "https://example.org/a",
        "https://other.example/c",
        "file:///etc/passwd",
        "https://example.org/ä",
    )
    found = read_listing(data, SITE)
    assert isinstance(found, Listing)
    assert [page.url.removeprefix("https://example.org") for page in found.pages] == [
        *("/a", "/b", "/%C3%A4"),
    ]
    assert found.passed_over == 2
    assert pages(gzip.compress(data)) == [page.url for page in found.pages]


def test_feeds_of_every_kind_name_their_entries() -> None:
    assert pages(RSS) == [
        "https://example.org/a",
        "https://example.org/b",
        "https://elsewhere.example/d?x=1&y=2",
        "https://example.org/relative",
    ]
    assert pages(ATOM) == ["https://example.org/e1", "https://example.org/e2"]
    assert pages(RDF) == ["https://example.org/r"]
    found = read_listing(RSS, SITE)
    assert isinstance(found, Listing)
    assert found.pages[0].changed == "Mon, 1 Jun 2026"


@pytest.mark.parametrize("between", [b"&nbsp;", b"<!-- x -->", b"<?x y?>", b"<![CDATA[x]]>"])
def test_what_stands_between_the_elements_of_an_entry_is_passed_over(between: bytes) -> None:
    item = between.join([b"<item>", b"<link>https://example.org/a</link>", b"</item>"])
    assert pages(b"<rss><channel>" + item + b"</channel></rss>") == ["https://example.org/a"]


def test_an_index_names_sitemaps() -> None:
    found = read_listing(index("https://example.org/1.xml", "https://other.example/2.xml"), SITE)
    assert isinstance(found, Listing)
    assert found.sitemaps == ("https://example.org/1.xml",)


def test_no_more_than_the_limit_is_read() -> None:
    data = sitemap(*(f"https://example.org/{n}" for n in range(1000)))
    assert len(pages(data, limit=10)) == 10
    cut = read_listing(data[: len(data) // 2], SITE)
    assert isinstance(cut, Listing)
    assert 400 < len(cut.pages) < 600


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain text",
        b"<html><body>not found</body></html>",
        b"<urlset></urlset>",
        b"\x1f\x8b damaged",
        gzip.compress(bytes(60_000_000)),
        b'<!DOCTYPE a [<!ENTITY x "y">]><urlset><url><loc>&x;</loc></url></urlset>',
        b'<!DOCTYPE a [<!EnTiTy % x SYSTEM "file:///etc/passwd"> %x;]><urlset/>',
    ],
)
def test_what_is_no_listing_is_refused_with_advice(data: bytes) -> None:
    found = read_listing(data, SITE)
    assert isinstance(found, FetchRefusal)
    assert found.next_step


def test_ten_thousand_nested_elements_are_no_danger() -> None:
    found = read_listing(b"<urlset>" + b"<a>" * 10_000, SITE)
    assert isinstance(found, FetchRefusal)


@pytest.mark.requirement("P-71")
def test_a_sitemap_index_brings_its_pages_and_later_ones(watching: Watching) -> None:
    url = watching.site.url
    served = {
        "/sitemap.xml": index(url("/part.xml.gz"), url("/private/part.xml")),
        "/part.xml.gz": gzip.compress(sitemap(url("/1"), url("/2"), url("/private/3"))),
        "/robots.txt": b"User-agent: *\nDisallow: /private\n",
    }
    for path in served:
        watching.site.routes[path] = lambda asked: asked.reply(body=served[asked.path])
    for number in range(1, 5):
        watching.page(f"/{number}", TEXT.format(number))
    row = watching.watch("/sitemap.xml", expand="sitemap", audiences=("staff",))
    assert watching.check().counts == {"listed": 2}
    keys = list(watching.check().keys)
    assert len(keys) == 2
    assert all(r.audiences == ["staff"] for r in watching.bench.line.rows(keys))
    assert not [asked.path for asked in watching.site.seen if "private" in asked.path]

    served["/part.xml.gz"] = gzip.compress(sitemap(url("/1"), url("/2"), url("/4")))
    watching.wall.pass_by(hours=2)
    report = watching.check()
    assert report.counts == {"listed": 1, "unchanged": 2}
    assert watching.check().counts == {"changed": 1}
    assert len(watching.rows(row)) == 3


@pytest.mark.requirement("P-71")
def test_a_page_that_the_sitemap_dates_anew_is_looked_at_at_once(watching: Watching) -> None:
    dates = ["2026-01-01"]
    watching.site.routes["/map.xml"] = lambda asked: asked.reply(
        body=sitemap(watching.site.url("/1"), changed=dates[-1])
    )
    watching.page("/1", TEXT.format(1))
    watching.watch("/map.xml", expand="sitemap", every_s=24 * 3600)
    watching.check()
    watching.check()
    looks = watching.asked("/1")
    with watching.bench.line.capabilities.database.transaction("pipeline") as conn:
        conn.execute("update kb.watch set next_check_at = %s", [watching.wall()])
    dates.append("2026-06-02")
    watching.check()
    watching.check()
    assert watching.asked("/1") == looks + 1


@pytest.mark.requirement("P-71")
def test_a_feed_is_asked_conditionally_and_keeps_what_fell_out_of_it(watching: Watching) -> None:
    entries = ["/1", "/2"]

    def feed() -> bytes:
        inner = "".join(f"<item><link>{watching.site.url(path)}</link></item>" for path in entries)
        return f"<rss><channel>{inner}</channel></rss>".encode()

    def answer(asked: object) -> None:
        tag = f'"{len(entries)}{entries[0]}"'
        if asked.headers.get("if-none-match") == tag:  # type: ignore[attr-defined]
            asked.reply("304 Not Modified", ETag=tag, Content_Length="-")  # type: ignore[attr-defined]
        else:
            asked.reply(body=feed(), ETag=tag)  # type: ignore[attr-defined]

    watching.site.routes["/feed"] = answer
    for number in range(1, 4):
        watching.page(f"/{number}", TEXT.format(number))
    row = watching.watch("/feed", expand="feed", limit=2)
    watching.check()
    watching.check()
    watching.wall.pass_by(hours=2)
    assert watching.check().counts == {"unchanged": 2}
    entries[:] = ["/3", "/2"]
    watching.wall.pass_by(hours=2)
    assert watching.check().counts == {"listed": 1, "unchanged": 2}
    assert len(watching.rows(row)) == 3


@pytest.mark.parametrize("body", [b"<html>moved</html>", b""])
def test_a_listing_that_is_none_says_so_and_is_tried_again(watching: Watching, body: bytes) -> None:
    from kb_resources.stages import watch

    watching.site.routes["/map.xml"] = lambda asked: asked.reply(body=body)
    watching.watch("/map.xml", expand="sitemap")
    watching.check()
    (row,) = watch.list_(watching.bench.line.capabilities.database, "acme")
    assert "Name the address of a sitemap" in str(row.reason)
    assert row.next_check_at is not None
    assert row.next_check_at > watching.wall()


def test_a_page_of_a_listing_cannot_be_watched_twice_with_other_readers(
    watching: Watching,
) -> None:
    from kb_resources.errors import ConflictError

    watching.site.routes["/map.xml"] = lambda asked: asked.reply(
        body=sitemap(watching.site.url("/1"))
    )
    watching.page("/1", TEXT.format(1))
    watching.watch("/map.xml", expand="sitemap", audiences=("board",))
    watching.check()
    with pytest.raises(ConflictError):
        watching.watch("/1")
