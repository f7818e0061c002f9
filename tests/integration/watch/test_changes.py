"""What a look at a page brings: news become versions, noise does not, and bad answers nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kb_resources.stages import scopes, watch
from tests.integration.watch.conftest import FORTY, THIRTY, only_key

if TYPE_CHECKING:
    from tests.integration.watch.conftest import Watching


@pytest.mark.requirement("P-71", "P-35")
def test_a_changed_page_is_a_new_version_and_a_reverted_one_the_old(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave")
    key = only_key(watching.round().keys)
    assert watching.bench.state(key) == ("indexed", "")
    assert "thirty days" in watching.bench.texts("days of annual leave")[0]

    watching.page("/leave", FORTY)
    watching.wall.pass_by(hours=2)
    assert list(watching.round().keys) == [key]
    assert "forty days" in watching.bench.texts("days of annual leave")[0]

    watching.page("/leave", THIRTY)
    watching.wall.pass_by(hours=2)
    watching.bench.counters.clear()
    assert list(watching.round().keys) == [key]
    assert "thirty days" in watching.bench.texts("days of annual leave")[0]
    assert watching.versions(key) == [1, 2]
    assert watching.bench.counters.get("embedded", 0) == 0


@pytest.mark.requirement("P-71")
def test_a_page_that_is_not_modified_costs_one_request_and_no_run(watching: Watching) -> None:
    watching.tagged("/leave", THIRTY, '"v1"')
    watching.watch("/leave")
    watching.round()
    blobs = watching.bench.counters.copy()
    for _ in range(3):
        watching.wall.pass_by(hours=2)
        report = watching.round()
        assert report.keys == {}
        assert report.counts == {"unchanged": 1}
    assert watching.asked("/leave") == 4
    assert watching.asked("/robots.txt") == 1
    assert watching.bench.counters == blobs


@pytest.mark.requirement("P-71")
def test_a_changed_banner_nonce_or_date_is_no_new_version(watching: Watching) -> None:
    watching.page("/leave", THIRTY, nonce="first")
    watching.watch("/leave")
    key = only_key(watching.round().keys)
    for nonce in ("second", "third"):
        watching.page("/leave", THIRTY, nonce=nonce, ETag=f'"{nonce}"')
        watching.wall.pass_by(hours=2)
        report = watching.round()
        assert report.keys == {}
        assert report.counts == {"unchanged": 1}
    assert watching.versions(key) == [1]
    watching.page("/leave", FORTY, nonce="third")
    watching.wall.pass_by(hours=2)
    assert list(watching.round().keys) == [key]


def test_a_page_whose_kept_bytes_are_gone_is_fetched_anew(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave")
    keys = list(watching.check().keys)
    blobs = watching.bench.line.capabilities.blobs("acme")
    for digest in list(blobs.iter()):
        blobs.delete(digest)
    watching.bench.line.run_all(keys)
    assert watching.bench.state(keys[0]) == ("indexed", "")
    assert watching.asked("/leave") == 2


def test_an_articles_author_date_and_publication_are_kept(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave")
    key = only_key(watching.round().keys)
    with watching.bench.line.capabilities.database.transaction("pipeline") as conn:
        row = conn.execute("select metadata from kb.parsed").fetchone()
    assert row is not None
    assert row[0]["author"] == "Ada Byron"
    assert row[0]["date"] == "2026-02-03"
    assert row[0]["publication"] == "The Gazette"
    assert watching.bench.line.rows([key])[0].title == "Leave"


def test_an_empty_answer_does_not_take_the_place_of_the_page(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave")
    key = only_key(watching.round().keys)
    watching.site.routes["/leave"] = lambda asked: asked.reply(body=b"")
    watching.wall.pass_by(hours=2)
    assert watching.round().counts == {"failing": 1}
    assert watching.bench.state(key) == ("indexed", "")
    assert "empty" in str(watching.rows(row)[0]["reason"])


def test_a_first_answer_that_is_no_document_ends_with_its_reason(watching: Watching) -> None:
    watching.site.routes["/tool"] = lambda asked: asked.reply(body=b"MZ" + bytes(500))
    watching.watch("/tool")
    key = only_key(watching.round().keys)
    state, reason = watching.bench.state(key)
    assert state == "unsupported"
    assert "program" in reason


def test_the_same_address_is_another_document_in_another_scope(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave")
    watching.watch("/leave", scope="beta")
    keys = list(watching.round().keys)
    assert {key.scope for key in keys} == {"acme", "beta"}
    assert len({key.document_id for key in keys}) == 1


@pytest.mark.requirement("P-69")
@pytest.mark.parametrize(
    ("wanted", "kept"), [((), True), (("blue",), True), (("red", "blue"), False)]
)
def test_a_new_watch_takes_no_document_from_other_readers(
    watching: Watching, wanted: tuple[str, ...], kept: bool
) -> None:
    watching.page("/leave", THIRTY)
    first = watching.watch("/leave", audiences=("red",))
    key = only_key(watching.round().keys)
    watch.remove(watching.bench.line.capabilities.database, first.watch_id, "acme")
    watching.page("/leave", FORTY)
    again = watching.watch("/leave", audiences=wanted)
    watching.round()
    [row] = watching.bench.line.rows([key])
    assert row.audiences == (["red"] if kept else ["blue", "red"])
    assert ("cannot be used" in str(watching.rows(again)[0]["reason"])) is kept


@pytest.mark.requirement("P-71")
def test_a_closed_scope_keeps_no_page_of_another_from_being_looked_at(watching: Watching) -> None:
    database = watching.bench.line.capabilities.database
    watching.page("/closed", THIRTY)
    watching.page("/open", FORTY)
    closed = watching.watch("/closed", scope="archive")
    watching.watch("/open")
    scopes.close(database, "archive", watching.wall(), actor="test")
    key = only_key(watching.round().keys)
    assert key.scope == "acme"
    assert watching.bench.state(key) == ("indexed", "")
    [page] = watching.rows(closed)
    assert "closed" in str(page["reason"])
    scopes.reopen(database, "archive", actor="test")
    watching.wall.pass_by(hours=2)
    assert only_key(watching.round().keys).scope == "archive"
