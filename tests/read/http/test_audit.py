"""The logs over HTTP: searches, the walk to bytes, replays; for administrators of the scope."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.http import worker
from kb_resources.settings import Settings
from tests.read.http.conftest import LEAVE, Client, Served, make_key, serving

QUESTION = "How many days of annual leave do employees take?"
CANARY = "zanzibar"


@pytest.fixture
def own(settings: Settings) -> Iterator[Served]:
    with serving(settings, run_worker=False) as running:
        yield running


@pytest.fixture
def admin(own: Served) -> Client:
    return own.client.with_key(make_key(own.settings, "admin"))


@pytest.fixture
def viewer(own: Served) -> Client:
    return own.client.with_key(make_key(own.settings, "viewer"))


def publish(own: Served, admin: Client, text: str = LEAVE) -> None:
    given = {"audiences": "", "document_id": "leave"}
    assert admin.upload("leave.md", text, **given).status == 202
    worker.work(own.settings, linger_s=0.3, should_stop=lambda: False)


def search(client: Client, correlation_id: str, query: str = QUESTION) -> Any:
    headers = {"X-Correlation-ID": correlation_id}
    wish = {"query": query, "scope": "acme"}
    return client("POST", "/api/v1/search", json=wish, headers=headers).json


@pytest.mark.requirement("O-48", "O-49")
def test_a_search_is_walked_to_its_bytes(own: Served, admin: Client, viewer: Client) -> None:
    publish(own, admin)
    search(viewer, "search-0001", f"{CANARY} {QUESTION}")
    answer = admin("GET", "/api/v1/audit/acme/search-0001")
    assert answer.status == 200, answer.text
    [source] = answer.json["sources"]
    assert (source["document_id"], source["ranks"]) == ("leave", [1])
    assert (source["known"], source["is_slice"], source["bytes_hold"]) == (True, True, True)
    assert source["accounted_for"]
    [row] = answer.json["retrievals"]
    assert row["actor"] == viewer("GET", "/api/v1/me").json["actor"]
    assert CANARY not in answer.text

    blob_url = own.settings.blob_url
    [blob] = [p for p in Path(blob_url).rglob("*") if p.is_file()]
    blob.write_bytes(b"something else")
    damaged = admin("GET", "/api/v1/audit/acme/search-0001").json["sources"][0]
    assert (damaged["bytes_hold"], damaged["accounted_for"]) == (False, False)
    blob.unlink()
    assert admin("GET", "/api/v1/audit/acme/search-0001").json["sources"][0]["bytes_hold"] is None


@pytest.mark.requirement("O-49")
def test_an_answer_and_its_search_share_one_id(own: Served, admin: Client, viewer: Client) -> None:
    publish(own, admin)
    headers = {"X-Correlation-ID": "answer-0001"}
    asked = viewer(
        "POST", "/api/v1/ask", json={"question": QUESTION, "scope": "acme"}, headers=headers
    ).json
    assert asked["citations"]
    found = admin("GET", "/api/v1/audit/acme/answer-0001").json
    assert [len(found[name]) for name in ("retrievals", "answers")] == [1, 1]
    assert found["sources"][0]["cited"]


@pytest.mark.requirement("O-48")
def test_searches_are_listed_page_by_page(own: Served, admin: Client, viewer: Client) -> None:
    publish(own, admin)
    for number in range(3):
        search(viewer, f"search-000{number}")
    first = admin("GET", "/api/v1/audit/acme/searches?limit=2").json
    path = f"/api/v1/audit/acme/searches?limit=2&cursor={first['next_cursor'].replace('+', '%2B')}"
    rest = admin("GET", path).json
    ids = [item["correlation_id"] for item in first["items"] + rest["items"]]
    assert ids == ["search-0002", "search-0001", "search-0000"]
    assert admin("GET", "/api/v1/audit/acme/searches?limit=3").json["next_cursor"] is None


@pytest.mark.requirement("O-48")
def test_a_replay_says_what_changed_and_why(own: Served, admin: Client, viewer: Client) -> None:
    publish(own, admin)
    search(viewer, "search-0001")
    path = "/api/v1/audit/acme/search-0001/replay"
    same = admin("POST", path, json={"question": QUESTION})
    assert same.status == 200, same.text
    assert (same.json["reproduced"], same.json["unchanged"]) == (True, True)
    publish(own, admin, LEAVE.replace("thirty", "forty"))
    changed = admin("POST", path, json={"question": QUESTION}).json
    assert (changed["reproduced"], changed["unchanged"]) == (True, False)
    old = next(item for item in changed["passages"] if item["version"] == 1)
    assert (old["rank_logged"], old["rank_now"], old["cause"]) == (1, None, "document")
    other = admin("POST", path, json={"question": "Something else?"})
    assert (other.status, other.json["code"]) == (400, "invalid_input")


@pytest.mark.requirement("O-50")
def test_logs_of_another_scope_do_not_show(own: Served, admin: Client, viewer: Client) -> None:
    publish(own, admin)
    search(viewer, "search-0001")
    elsewhere = own.client.with_key(make_key(own.settings, "admin", scopes=["other"]))
    assert elsewhere("GET", "/api/v1/audit/acme/search-0001").status == 404
    assert elsewhere("GET", "/api/v1/audit/other/search-0001").status == 404
    assert admin("GET", "/api/v1/audit/acme/search-9999").status == 404
