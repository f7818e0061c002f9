"""One address that names many: sitemaps and feeds.

Belongs here: reading their XML under limits. Whether the pages may be fetched is asked for each.
Nothing in the XML is resolved or loaded. See https://www.sitemaps.org/protocol.html,
https://www.rssboard.org/rss-specification and RFC 4287.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kb_resources.acquire.fetch_body import gunzip
from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal, FetchStopped
from kb_resources.acquire.fetch_url import Target, read_url

MAX_LISTING_BYTES = 50 * 2**20
MAX_ENTRIES = 50_000
MAX_SITEMAPS = 500
# Elements of a listing that are looked at; an entry has some ten at most.
_MAX_ELEMENTS = 1_000_000
_MAX_RATIO = 200
_DAMAGED = "Name the address of a sitemap, sitemap index, RSS or Atom feed."


@dataclass(frozen=True, slots=True)
class Listed:
    """One page that a listing names.

    Attributes:
        url: canonical address.
        changed: when it says the page changed, as written, or empty.
    """

    url: str
    changed: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a sitemap or feed names.

    Attributes:
        kind: `sitemap`, `sitemapindex` or `feed`.
        pages: pages in the listing's order, each once.
        sitemaps: further sitemaps, of an index.
        passed_over: addresses that are none, or of another site than their sitemap.
    """

    kind: str
    pages: tuple[Listed, ...] = ()
    sitemaps: tuple[str, ...] = ()
    passed_over: int = 0


def read_listing(data: bytes, url: str, *, limit: int = MAX_ENTRIES) -> Listing | FetchRefusal:
    """Read a sitemap, sitemap index, RSS or Atom feed; gzip is undone.

    Args:
        data: the content.
        url: canonical address it came from.
        limit: pages taken at most; further ones are not read.
    """
    try:
        base = read_url(url)
        if data[:2] == b"\x1f\x8b":
            data = gunzip(data, MAX_LISTING_BYTES, _MAX_RATIO)
        return _read(data, base, min(limit, MAX_ENTRIES))
    except FetchStopped as stopped:
        return stopped.refusal


def _read(data: bytes, base: Target, limit: int) -> Listing:
    kind = ""
    pages: dict[str, Listed] = {}
    sitemaps: dict[str, None] = {}
    passed_over = 0
    for kind, found, changed in _entries(data):
        try:
            there = read_url(found, base)
        except FetchStopped:
            passed_over += 1
            continue
        if kind != "feed" and there.host != base.host:
            passed_over += 1
        elif kind == "sitemapindex":
            sitemaps.setdefault(there.url)
        else:
            pages.setdefault(there.url, Listed(there.url, changed))
        if len(pages) >= limit or len(sitemaps) >= MAX_SITEMAPS:
            break
    if not kind:
        raise _no_listing("names no pages")
    return Listing(kind, tuple(pages.values()), tuple(sitemaps), passed_over)


def _entries(data: bytes) -> Iterator[tuple[str, str, str]]:
    """Kind, address and date of each entry, element by element."""
    from lxml import etree

    if b"<!ENTITY" in data[:65_536].upper():
        raise _no_listing("declares XML entities")
    walk = etree.iterparse(
        io.BytesIO(data),
        events=("start", "end"),
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    kind = ""
    try:
        for number, (event, element) in enumerate(walk):
            if number > 2 * _MAX_ELEMENTS:
                raise _no_listing("holds more elements than a listing does")
            name = etree.QName(element).localname.lower()
            if not kind:
                kind = _KINDS.get(name, "")
                if not kind:
                    raise _no_listing(f"is a <{name[:30]}>")
            elif event == "end" and name in _ENTRIES[kind]:
                url, changed = _entry(element)
                _forget(element)
                if url:
                    yield kind, url, changed
    except etree.XMLSyntaxError as error:
        raise _no_listing("is not XML") from error


_KINDS = {
    "urlset": "sitemap",
    "sitemapindex": "sitemapindex",
    "rss": "feed",
    "feed": "feed",
    "rdf": "feed",
}
_ENTRIES = {
    "sitemap": frozenset({"url"}),
    "sitemapindex": frozenset({"sitemap"}),
    "feed": frozenset({"item", "entry"}),
}
_DATES = ("lastmod", "updated", "pubdate", "date", "published")


def _forget(element: Any) -> None:
    """Drop an entry that was read and what stands before it, so that memory stays bounded."""
    element.clear()
    while (before := element.getprevious()) is not None:
        element.getparent().remove(before)


def _entry(element: Any) -> tuple[str, str]:
    """Address and date of one entry of any kind."""
    from lxml import etree

    url = guid = ""
    dates: dict[str, str] = {}
    for child in element.iterchildren(etree.Element):  # not the entities between them
        name, text = etree.QName(child).localname.lower(), (child.text or "").strip()
        if name == "loc":
            url = text
        elif name == "link":
            rel = child.get("rel", "alternate")
            url = url or (text or child.get("href", "") if rel == "alternate" else "")
        elif name == "guid" and child.get("isPermaLink", "true") == "true":
            guid = text if text.startswith(("http://", "https://")) else ""
        elif name in _DATES:
            dates.setdefault(name, text[:100])
    return url or guid, next((dates[name] for name in _DATES if dates.get(name)), "")


def _no_listing(what: str) -> FetchStopped:
    return FetchStopped(FetchRefusal(FetchProblem.PROTOCOL, f"The answer {what}.", _DAMAGED))
