"""`kb watch` as a user types it, against a site that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.fetch.conftest import OpenSite, Site, open_site, site  # noqa: F401

if TYPE_CHECKING:
    from tests.e2e.conftest import Kb

PAGE = "<html><head><title>Leave</title></head><body><h1>Leave</h1><p>{0}</p></body></html>"
THIRTY = "Every employee has thirty days of paid annual leave in a calendar year."


@pytest.mark.requirement("P-71")
def test_a_page_is_watched_looked_at_paused_and_forgotten(kb: Kb, site: Site) -> None:  # noqa: F811
    opened = {"KB_FETCH_ALLOW_HOSTS": site.authority, "KB_FETCH_DELAY_S": "0"}
    site.routes["/leave"] = lambda asked: asked.reply(
        body=PAGE.format(THIRTY).encode(), ETag='"1"', Content_Type="text/html"
    )
    url = site.url("/leave")

    refused = kb("watch", "add", url, "--scope", "watched")
    assert refused.code == 4
    assert "KB_FETCH_ALLOW_HOSTS" in refused.err
    for wrong in (
        ("--every", "soon"),
        ("--every", "5s"),
        ("--after", "0"),
        ("--audience", "two words"),
    ):
        assert kb("watch", "add", url, "--scope", "watched", *wrong, **opened).code == 2
    assert kb("watch", "add", url, **opened).code == 2  # no scope

    added = kb("watch", "add", url, "--scope", "watched", "--every", "90m", "--json", **opened).json
    assert (added["url"], added["every_s"], added["state"]) == (url, 5400, "active")
    again = kb("watch", "add", url, "--scope", "watched", **opened)
    assert again.code == 1
    assert added["watch_id"] in again.err

    looked = kb("watch", "check", "--scope", "watched", "--no-dagster", "--json", **opened)
    assert looked.code == 0, looked.err
    assert looked.json["counts"] == {"changed": 1}
    assert [d["state"] for d in looked.json["documents"]] == ["indexed"]
    found = kb("search", "days of leave", "--scope", "watched", "--json").json
    assert "thirty days" in found["hits"][0]["text"]

    quiet = kb("watch", "check", added["watch_id"], "--scope", "watched", "--no-dagster", **opened)
    assert quiet.out == "1 unchanged.\n"
    (row,) = kb("watch", "list", "--scope", "watched", "--json").json
    assert row["states"] == {"current": 1}
    assert "90m" in kb("watch", "list", "--scope", "watched").out
    shown = kb("watch", "show", added["watch_id"], "--scope", "watched", "--json").json
    assert shown["watched_pages"][0]["url"] == url

    assert (
        kb("watch", "pause", added["watch_id"], "--scope", "watched", "--json").json["state"]
        == "paused"
    )
    idle = kb("watch", "check", "--scope", "watched", "--no-dagster", **opened)
    assert idle.out == "Nothing was due.\n"
    assert kb("watch", "resume", added["watch_id"], "--scope", "watched").code == 0
    site.routes["/leave"] = lambda asked: asked.reply("500 Broken")
    failing = kb("watch", "check", "--scope", "watched", "--no-dagster", **opened)
    assert failing.code == 1
    assert "500" in kb("watch", "show", added["watch_id"], "--scope", "watched").out
    assert kb("watch", "remove", added["watch_id"], "--scope", "other").code == 3
    assert kb("watch", "remove", added["watch_id"], "--scope", "watched").code == 0
    assert kb("watch", "list", "--scope", "watched", "--json").json == []


@pytest.mark.requirement("P-01", "P-49")
def test_a_page_can_be_ingested_once(kb: Kb, site: Site) -> None:  # noqa: F811
    site.routes["/once"] = lambda asked: asked.reply(
        body=PAGE.format(THIRTY).encode(), Content_Type="text/html"
    )
    url = site.url("/once")
    ingest = ("ingest", url, "--scope", "once", "--no-dagster", "--json")
    refused = kb(*ingest)
    assert refused.code == 1
    (row,) = refused.lines
    assert "KB_FETCH_ALLOW_HOSTS" in row["reason"]
    done = kb(*ingest, KB_FETCH_ALLOW_HOSTS=site.authority)
    assert done.code == 0, done.err
    (row,) = done.lines
    assert (row["path"], row["state"], row["version"]) == (url, "indexed", 1)
    wrong = kb("ingest", "http://me:secret@example.org/", "--scope", "once", "--no-dagster")
    assert wrong.code == 2
    assert "secret" not in wrong.err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("6h", 21_600), ("1d", 86_400), ("2w", 1209600)],
)
def test_durations_read_back(text: str, seconds: int) -> None:
    from kb.cli import watch

    assert watch.seconds(text) == seconds
    assert watch.seconds(watch.in_words(seconds)) == seconds
