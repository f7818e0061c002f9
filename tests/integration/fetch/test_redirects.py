"""Redirects: which are followed and how far, and what is not carried to another origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kb_resources.acquire import Fetched, FetchProblem
from tests.integration.fetch.conftest import PAGE, fetcher, refused

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import Asked, OpenSite, Site


@pytest.mark.requirement("P-49")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_with_the_same_method(site: Site, status: int) -> None:
    site.routes["/a/b"] = lambda asked: asked.reply(f"{status} There", Location="../c?d=1")
    site.routes["/c"] = lambda asked: asked.reply(body=PAGE)
    found = fetcher(site).fetch(site.url("/a/b"))
    assert isinstance(found, Fetched)
    assert found.redirects == 1
    assert found.validators.url == site.url("/c?d=1")


@pytest.mark.parametrize("status", [300, 305, 306, 399])
def test_other_redirections_are_not_followed(site: Site, status: int) -> None:
    site.routes["/"] = lambda asked: asked.reply(f"{status} There", Location="/c")
    refused(fetcher(site).fetch(site.url()), FetchProblem.REDIRECT)
    assert len(site.seen) == 1


@pytest.mark.requirement("P-49")
def test_five_redirects_are_followed_and_a_sixth_is_not(site: Site) -> None:
    for number in range(7):
        site.routes[f"/{number}"] = lambda asked, to=number + 1: asked.reply(
            "302 Found", Location=f"/{to}"
        )
    site.routes["/7"] = lambda asked: asked.reply(body=PAGE)
    assert isinstance(fetcher(site).fetch(site.url("/2")), Fetched)
    site.seen.clear()
    refused(fetcher(site).fetch(site.url("/1")), FetchProblem.REDIRECT)
    assert [asked.path for asked in site.seen] == ["/1", "/2", "/3", "/4", "/5", "/6"]


def test_a_redirect_to_nowhere_is_refused(site: Site) -> None:
    site.routes["/"] = lambda asked: asked.reply("302 Found")
    refused(fetcher(site).fetch(site.url()), FetchProblem.REDIRECT)


@pytest.mark.requirement("P-49")
def test_credentials_and_cookies_stay_within_the_origin(open_site: OpenSite) -> None:
    home, other = open_site(), open_site()
    home.routes["/"] = lambda asked: asked.reply(
        "302 Found", Location="/next", Set_Cookie="session=s3cret; Path=/; HttpOnly"
    )
    home.routes["/next"] = lambda asked: asked.reply("302 Found", Location=other.url("/away"))
    other.routes["/away"] = lambda asked: asked.reply(
        "302 Found", Location=home.url("/back"), Set_Cookie="other=1"
    )
    home.routes["/back"] = lambda asked: asked.reply(body=PAGE)
    found = fetcher(home, other).fetch(home.url(), headers={"Authorization": "Bearer key"})
    assert isinstance(found, Fetched)
    sent = [
        (asked.path, asked.headers.get("authorization"), asked.headers.get("cookie"))
        for asked in (*home.seen[:2], *other.seen, *home.seen[2:])
    ]
    assert sent == [
        ("/", "Bearer key", None),
        ("/next", "Bearer key", "session=s3cret"),
        ("/away", None, None),
        ("/back", None, None),
    ]


def test_redirects_do_not_add_time(site: Site) -> None:
    def answer(asked: Asked) -> None:
        if not asked.stopped.wait(0.3):
            asked.reply("302 Found", Location="/")

    site.routes["/"] = answer
    refused(fetcher(site, timeout_s=0.7, max_redirects=100).fetch(site.url()), FetchProblem.TIMEOUT)
    assert len(site.seen) <= 4
