"""Quotes over HTTP: checked, kept for a holder, looked at again; hidden with their documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kb.http import worker
from kb_resources.settings import Settings
from tests.read.http.conftest import LEAVE, Client, Served, make_key, serving

QUOTE = "Employees take thirty days of annual leave."


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


def publish(own: Served, editor: Client, text: str, **fields: str) -> Any:
    """Upload, ingest, and give the passage that says it."""
    given = {"audiences": "", "document_id": "leave", **fields}
    assert editor.upload("leave.md", text, **given).status == 202
    worker.work(own.settings, linger_s=0.3, should_stop=lambda: False)
    wish = {"query": "annual leave", "scope": "acme", "document_ids": [given["document_id"]]}
    return editor("POST", "/api/v1/search", json=wish).json["hits"][0]


def wish(hit: Any, quote: str = QUOTE, **more: Any) -> dict[str, Any]:
    return {"scope": "acme", "passage_id": hit["passage_id"], "quote": quote, **more}


@pytest.mark.requirement("O-43", "O-44", "P-76")
@pytest.mark.parametrize(
    ("quote", "reason"),
    [
        (QUOTE, None),
        ("Employees  take thirty\u00a0days of annual leave.", None),
        ("employees take thirty days of annual leave.", "absent"),
        ("Employees take thirty days of leave.", "absent"),
        ("thirty days", "too_short"),
    ],
)
def test_a_quote_is_checked_against_the_documents_own_words(
    own: Served, editor: Client, viewer: Client, quote: str, reason: str | None
) -> None:
    hit = publish(own, editor, LEAVE)
    answer = viewer("POST", "/api/v1/citations/verify", json=wish(hit, quote))
    assert answer.status == 200, answer.text
    assert answer.json["reason"] == reason
    if reason is None:
        assert answer.json["quote"] == QUOTE
        assert answer.json["status"] == "stands"
        assert {item["type"] for item in answer.json["selector"]} == {
            "TextQuoteSelector",
            "TextPositionSelector",
        }
    else:
        assert answer.json["quote"] is None
        kept = editor("POST", "/api/v1/citations", json=wish(hit, quote, holder="page 7"))
        assert (kept.status, kept.json["code"]) == (403, f"quote_{reason}")


@pytest.mark.requirement("O-47")
def test_a_kept_quote_follows_its_document(own: Served, editor: Client, viewer: Client) -> None:
    hit = publish(own, editor, LEAVE)
    made = editor(
        "POST", "/api/v1/citations", json=wish(hit, holder="page 7", note="for the flyer")
    )
    assert made.status == 201, made.text
    assert (made.json["status"], made.json["version_now"]) == ("stands", 1)
    again = {"scope": "acme", "citation_id": made.json["citation_id"]}
    for text, status in (
        (LEAVE + "\nUnused days lapse in March.\n", "superseded"),
        ("# Rules\n\nRead them.\n\n" + LEAVE, "moved"),
        (LEAVE.replace("thirty", "forty"), "missing"),
        (LEAVE, "stands"),
    ):
        publish(own, editor, text)
        [checked] = viewer("POST", "/api/v1/citations/check", json=again).json["items"]
        assert checked["status"] == status, text
    [of_holder] = viewer(
        "POST", "/api/v1/citations/check", json={"scope": "acme", "holder": "page 7"}
    ).json["items"]
    assert of_holder["note"] == "for the flyer"
    path = f"/api/v1/citations/acme/{made.json['citation_id']}"
    assert editor("DELETE", path).status == 204
    assert editor("DELETE", path).status == 404
    assert viewer("GET", "/api/v1/citations?scope=acme").json["items"] == []


def test_citations_come_page_by_page_by_holder_and_status(
    own: Served, editor: Client, viewer: Client
) -> None:
    hit = publish(own, editor, LEAVE)
    for holder in ("page 1", "page 2", "page 2"):
        editor("POST", "/api/v1/citations", json=wish(hit, holder=holder))
    path = "/api/v1/citations?scope=acme"
    first = viewer("GET", f"{path}&limit=2").json
    rest = viewer("GET", f"{path}&limit=2&cursor={first['next_cursor']}").json
    assert [item["holder"] for item in first["items"] + rest["items"]] == [
        "page 1", "page 2", "page 2",
    ]  # fmt: skip
    assert rest["next_cursor"] is None
    assert viewer("GET", f"{path}&limit=3").json["next_cursor"] is None
    assert len(viewer("GET", f"{path}&holder=page%202").json["items"]) == 2
    assert viewer("GET", f"{path}&status=missing").json["items"] == []
    assert viewer("GET", f"{path}&status=unknown").status == 422


@pytest.mark.requirement("O-21", "B-27")
def test_citations_of_what_is_for_others_do_not_show(
    own: Served, editor: Client, viewer: Client
) -> None:
    mine = f"user:{editor('GET', '/api/v1/me').json['actor']}"
    hit = publish(own, editor, LEAVE, audiences=mine, document_id="private")
    made = editor("POST", "/api/v1/citations", json=wish(hit, holder="page 7")).json
    assert viewer("GET", "/api/v1/citations?scope=acme").json["items"] == []
    one = {"scope": "acme", "citation_id": made["citation_id"]}
    assert viewer("POST", "/api/v1/citations/check", json=one).status == 404
    assert viewer("POST", "/api/v1/citations/verify", json=wish(hit)).status == 404
    other = own.client.with_key(make_key(own.settings, "editor"))
    assert other("DELETE", f"/api/v1/citations/acme/{made['citation_id']}").status == 404


@pytest.mark.parametrize("more", [{}, {"holder": "a", "citation_id": "b"}])
def test_a_check_over_http_is_of_one_holder_or_one_citation(
    viewer: Client, editor: Client, own: Served, more: dict[str, str]
) -> None:
    answer = viewer("POST", "/api/v1/citations/check", json={"scope": "acme", **more})
    assert (answer.status, answer.json["code"]) == (400, "invalid_input")
