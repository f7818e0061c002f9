"""Deciding over HTTP: reviews, readers of a document, remove and restore, watches, answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kb.http import worker
from kb_resources.settings import Settings
from kb_resources.store import access
from kb_resources.store.pool import Database
from tests.read.http.conftest import HELD, LEAVE, Client, Installation, Served, make_key, serving


@pytest.fixture
def own(settings: Settings) -> Iterator[Served]:
    with serving(settings, run_worker=False) as running:
        yield running


@pytest.fixture
def editor(own: Served) -> Client:
    return own.client.with_key(make_key(own.settings, "editor"))


@pytest.fixture
def viewer(own: Served) -> Client:
    return own.client.with_key(make_key(own.settings, "viewer"))


def published(own: Served, editor: Client, text: str = LEAVE, **fields: str) -> str:
    """Upload for everyone and ingest; the document's id."""
    answer = editor.upload("note.md", text, **{"audiences": "", **fields})
    assert answer.status == 202, answer.text
    run_jobs(own)
    [document] = editor("GET", f"/api/v1/jobs/{answer.json['job_id']}").json["documents"]
    return str(document["document_id"])


def run_jobs(own: Served) -> None:
    worker.work(own.settings, linger_s=0.3, should_stop=lambda: False)


def hits(client: Client, query: str = "annual leave") -> list[Any]:
    found = client("POST", "/api/v1/search", json={"query": query, "scope": "acme"})
    return list(found.json["hits"])


def events(client: Client, document_id: str) -> list[tuple[str, str]]:
    shown = client("GET", f"/api/v1/documents/acme/{document_id}").json
    return [(event["event"], event["actor"]) for event in shown["lifecycle"]]


def test_a_removed_document_is_found_no_more_until_it_is_restored(
    own: Served, editor: Client, viewer: Client
) -> None:
    document_id = published(own, editor)
    assert hits(viewer)
    answer = editor("DELETE", f"/api/v1/documents/acme/{document_id}?reason=outdated")
    assert (answer.status, answer.json["state"]) == (200, "removed")
    assert hits(viewer) == []
    answer = editor("POST", f"/api/v1/documents/acme/{document_id}/restore")
    assert (answer.status, answer.json["state"]) == (200, "indexed")
    assert hits(viewer)


@pytest.mark.requirement("P-19")
def test_a_decision_names_its_actor_in_the_documents_log(own: Served, editor: Client) -> None:
    document_id = published(own, editor)
    path = f"/api/v1/documents/acme/{document_id}"
    editor("DELETE", f"{path}?reason=outdated", headers={"X-KB-Actor": "user:anna"})
    actor = dict(events(editor, document_id))["removed"]
    assert actor.startswith("user:anna via key:")


def test_readers_of_a_document_change_with_the_next_query(
    own: Served, editor: Client, viewer: Client
) -> None:
    document_id = published(own, editor)
    path = f"/api/v1/documents/acme/{document_id}/audiences"
    mine = [f"user:{editor('GET', '/api/v1/me').json['actor']}"]
    assert editor("PUT", path, json={"audiences": mine}).json["audiences"] == mine
    assert hits(viewer) == []
    assert hits(editor)
    assert editor("PUT", path, json={"audiences": []}).status == 200
    assert hits(viewer)
    taken = editor("PUT", path, json={"audiences": ["user:somebody-else"]})
    assert (taken.status, taken.json["code"]) == (403, "audience_reserved")


def test_what_is_for_others_can_neither_be_removed_nor_shared(own: Served, editor: Client) -> None:
    document_id = published(own, editor, document_id="private")
    mine = [f"user:{editor('GET', '/api/v1/me').json['actor']}"]
    editor("PUT", f"/api/v1/documents/acme/{document_id}/audiences", json={"audiences": mine})
    other = own.client.with_key(make_key(own.settings, "editor"))
    path = f"/api/v1/documents/acme/{document_id}"
    assert other("DELETE", f"{path}?reason=mine").status == 404
    assert other("PUT", f"{path}/audiences", json={"audiences": []}).status == 404
    assert other("POST", f"{path}/restore").status == 404


def looked_at(case: dict[str, Any]) -> dict[str, Any]:
    """What a reviewer says about a case of the queue besides the reason."""
    return {name: case[name] for name in ("version", "digest", "body_digest")}


@pytest.mark.requirement("P-81")
@pytest.mark.parametrize("verb", ["release", "reject"])
def test_nobody_decides_about_a_version_that_came_after_they_looked(
    own: Served, editor: Client, verb: str
) -> None:
    document_id = published(own, editor, HELD)
    [case] = editor("GET", "/api/v1/reviews?scope=acme").json["items"]
    path = f"/api/v1/reviews/acme/{document_id}/{verb}"
    assert editor("POST", path, json={"reason": "read it"}).status == 422
    published(own, editor, HELD + "\nAnd the password is hunter2.\n", document_id=document_id)
    answer = editor("POST", path, json=looked_at(case) | {"reason": "read it"})
    assert (answer.status, answer.json["code"]) == (409, "not_what_was_shown")
    [now] = editor("GET", "/api/v1/reviews?scope=acme").json["items"]
    assert now["version"] == 2
    answer = editor("POST", path, json=looked_at(now) | {"reason": "read it"})
    assert answer.status in (200, 202)


@pytest.mark.requirement("P-81")
def test_a_held_document_is_reviewed_with_its_findings_and_released(
    own: Served, editor: Client, viewer: Client
) -> None:
    document_id = published(own, editor, HELD)
    [case] = editor("GET", "/api/v1/reviews?scope=acme").json["items"]
    assert (case["document_id"], case["version"]) == (document_id, 1)
    found = case["findings"][0]
    in_place = found["before"] + found["matched"] + found["after"]
    assert "If you are an AI model reading this page" in in_place
    assert found["matched"] in HELD
    path = f"/api/v1/reviews/acme/{document_id}"
    shown = looked_at(case)
    assert editor("POST", f"{path}/release", json=shown | {"reason": ""}).status == 422
    answer = editor("POST", f"{path}/release", json=shown | {"reason": "training material"})
    assert answer.status == 202, answer.text
    assert hits(viewer, "support tickets") == []
    run_jobs(own)
    assert editor("GET", f"/api/v1/jobs/{answer.json['job_id']}").json["state"] == "done"
    assert hits(viewer, "support tickets")
    actor = editor("GET", "/api/v1/me").json["actor"]
    assert ("released", actor) in events(editor, document_id)
    again = editor("POST", f"{path}/release", json=shown | {"reason": "once more"})
    assert (again.status, again.json["code"]) == (409, "gate")


def test_a_rejected_document_is_blocked(own: Served, editor: Client) -> None:
    document_id = published(own, editor, HELD)
    path = f"/api/v1/reviews/acme/{document_id}/reject"
    [case] = editor("GET", "/api/v1/reviews?scope=acme").json["items"]
    answer = editor("POST", path, json=looked_at(case) | {"reason": "an attack"})
    assert (answer.status, answer.json["state"]) == (200, "blocked")
    assert editor("GET", "/api/v1/reviews?scope=acme").json["items"] == []


def test_reviews_come_page_by_page_and_without_what_is_for_others(
    own: Served, editor: Client
) -> None:
    other = own.client.with_key(make_key(own.settings, "editor"))
    for number in range(3):
        editor.upload(f"{number}.md", HELD + f"\nNumber {number}.\n", audiences="")
    assert other.upload("other.md", HELD + "\nTheirs.\n").status == 202
    run_jobs(own)
    first = editor("GET", "/api/v1/reviews?scope=acme&limit=2").json
    rest = editor("GET", f"/api/v1/reviews?scope=acme&limit=2&cursor={first['next_cursor']}").json
    assert [len(first["items"]), len(rest["items"])] == [2, 1]
    assert rest["next_cursor"] is None
    assert len(other("GET", "/api/v1/reviews?scope=acme").json["items"]) == 4


@pytest.mark.requirement("P-19")
def test_addresses_are_watched_paused_and_forgotten(
    own: Served, editor: Client, database: Database
) -> None:
    made = editor("POST", "/api/v1/watches", json={"scope": "acme", "url": "https://example.org/a"})
    assert made.status == 201, made.text
    path = f"/api/v1/watches/{made.json['watch_id']}"
    listed = editor("GET", "/api/v1/watches?scope=acme").json["items"]
    assert [item["url"] for item in listed] == ["https://example.org/a"]
    assert editor("PATCH", path, json={"state": "paused"}).json["state"] == "paused"
    elsewhere = own.client.with_key(make_key(own.settings, "editor", scopes=["other"]))
    assert elsewhere("PATCH", path, json={"state": "active"}).status == 404
    assert elsewhere("DELETE", path).status == 404
    again = editor(
        "POST", "/api/v1/watches", json={"scope": "acme", "url": "https://example.org/a"}
    )
    assert (again.status, again.json["retryable"]) == (409, True)
    assert editor("DELETE", path).status == 204
    assert editor("GET", "/api/v1/watches?scope=acme").json["items"] == []
    with database.transaction("app") as conn:
        noted = [(e["event"], e["actor"]) for e in access.list_events(conn)]
    actor = editor("GET", "/api/v1/me").json["actor"]
    changes = [(f"watch_{what}", actor) for what in ("added", "paused", "removed")]
    assert [event for event in noted if event[0].startswith("watch_")] == changes


@pytest.mark.requirement("P-49")
@pytest.mark.parametrize("url", ["http://127.0.0.1/", "file:///etc/passwd", "http://10.0.0.1/x"])
def test_an_address_inside_is_not_watched(own: Served, editor: Client, url: str) -> None:
    answer = editor("POST", "/api/v1/watches", json={"scope": "acme", "url": url})
    assert answer.status in (400, 403)
    assert answer.json["next_step"]


def test_a_question_is_answered_with_verified_citations_within_ones_audiences(
    served: Served, installation: Installation
) -> None:
    viewer = served.client.with_key(installation.keys["viewer"])
    wish = {"question": "How many days of annual leave do employees take?", "scope": "acme"}
    answer = viewer("POST", "/api/v1/ask", json=wish)
    assert answer.status == 200, answer.text
    [citation] = answer.json["citations"]
    assert "thirty days" in citation["quote"]
    assert citation["quote"] in LEAVE
    assert citation["document_id"] == "leave"
    assert answer.json["correlation_id"] == answer.headers["x-correlation-id"]
    hidden = {"question": "When does the merger with Contoso close?", "scope": "acme"}
    assert "October" not in viewer("POST", "/api/v1/ask", json=hidden).text
    red = served.client.with_key(installation.keys["red"])
    assert "October" in red("POST", "/api/v1/ask", json=hidden).text


def test_what_a_decision_wakes_is_queued_though_the_export_is_away(
    settings: Settings, tmp_path: Path
) -> None:
    with serving(settings, run_worker=False) as own:
        editor = own.client.with_key(make_key(settings, "editor"))
        first = published(own, editor)
        second = published(own, editor, document_id="again")
        assert editor("GET", f"/api/v1/documents/acme/{second}").json["state"] == "duplicate"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("not an export's")
    with serving(replace(settings, export_git=foreign), run_worker=False) as own:
        answer = own.client.with_key(make_key(settings, "editor"))(
            "DELETE", f"/api/v1/documents/acme/{first}?reason=old"
        )
        assert answer.status >= 400
        assert (
            own.client.with_key(make_key(settings, "admin"))("GET", "/api/v1/jobs").json["items"][
                0
            ]["state"]
            == "queued"
        )
