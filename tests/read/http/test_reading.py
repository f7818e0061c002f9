"""Reading over HTTP: what is found, what shows, what stays hidden."""

from __future__ import annotations

from typing import Any

import pytest

from tests.read.http.conftest import Client, Installation, Served


@pytest.fixture
def viewer(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["viewer"])


@pytest.fixture
def red(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["red"])


@pytest.fixture
def admin(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["admin"])


def found(client: Client, query: str, **values: Any) -> Any:
    answer = client("POST", "/api/v1/search", json={"query": query, "scope": "acme", **values})
    assert answer.status == 200, answer.text
    return answer.json


def documents_of(answer: Any) -> set[str]:
    return {hit["document_id"] for hit in answer["hits"]}


@pytest.mark.requirement("P-69")
def test_a_search_gives_passages_with_the_places_of_its_words(viewer: Client) -> None:
    answer = found(viewer, "annual leave days")
    hit = answer["hits"][0]
    assert hit["document_id"] == "leave"
    marked = {hit["text"][span["start"] : span["end"]].lower() for span in hit["highlights"]}
    assert {"annual", "leave", "days"} <= marked
    assert answer["correlation_id"]


@pytest.mark.requirement("P-23")
def test_a_search_may_demand_every_word(viewer: Client, admin: Client) -> None:
    assert documents_of(found(viewer, "annual leave days", words="all")) == {"leave"}
    assert documents_of(found(admin, "annual merger")) >= {"leave", "merger"}
    assert documents_of(found(admin, "annual merger", words="all")) == set()
    assert documents_of(found(admin, "annual merger", words="all_first")) >= {"leave", "merger"}
    asked = {"query": "x", "scope": "acme", "words": "some"}
    assert viewer("POST", "/api/v1/search", json=asked).status == 422


@pytest.mark.requirement("B-03")
def test_audiences_hide_a_document_from_those_who_do_not_hold_one(
    viewer: Client, red: Client, admin: Client
) -> None:
    assert documents_of(found(viewer, "merger with Contoso")) == {"leave"}
    assert "merger" in documents_of(found(red, "merger with Contoso"))
    assert "merger" in documents_of(found(admin, "merger with Contoso"))


@pytest.mark.parametrize(
    "path", ["", "/history", "/versions/1/body", "/outline", "/diff?from=1&to=1"]
)
def test_a_hidden_document_is_as_good_as_none(viewer: Client, red: Client, path: str) -> None:
    hidden = viewer("GET", f"/api/v1/documents/acme/merger{path}")
    missing = viewer("GET", f"/api/v1/documents/acme/nothing{path}")
    assert hidden.status == missing.status == 404
    assert hidden.json["code"] == missing.json["code"]
    assert hidden.json["detail"].replace("merger", "nothing") == missing.json["detail"]
    assert red("GET", f"/api/v1/documents/acme/merger{path}").status == 200


def test_audiences_can_be_narrowed_and_never_widened(
    red: Client, viewer: Client, admin: Client
) -> None:
    assert documents_of(found(red, "merger", audiences=[])) == {"leave"}
    answer = viewer(
        "POST", "/api/v1/search", json={"query": "x", "scope": "acme", "audiences": ["red"]}
    )
    assert (answer.status, answer.json["code"]) == (403, "audience_not_held")
    assert "merger" not in documents_of(found(admin, "merger", audiences=["blue"]))


def test_scores_are_for_administrators(viewer: Client, admin: Client) -> None:
    assert "score" not in found(viewer, "leave")["hits"][0]
    assert "score" in found(admin, "leave")["hits"][0]


def test_what_the_scan_holds_back_is_listed_without_its_text(viewer: Client) -> None:
    page = viewer("GET", "/api/v1/documents?scope=acme").json
    states = {item["document_id"]: item["state"] for item in page["items"]}
    assert states == {"leave": "indexed", "minutes": "quarantined"}
    assert viewer("GET", "/api/v1/documents/acme/minutes/versions/1/body").status == 404
    shown = viewer("GET", "/api/v1/documents/acme/minutes").json
    assert shown["preview"] is None


def test_documents_come_page_by_page_and_by_state_and_words(admin: Client) -> None:
    first = admin("GET", "/api/v1/documents?scope=acme&limit=2").json
    second = admin(
        "GET", f"/api/v1/documents?scope=acme&limit=2&cursor={first['next_cursor']}"
    ).json
    seen = [item["document_id"] for item in first["items"] + second["items"]]
    assert sorted(seen) == ["leave", "merger", "minutes"]
    assert second["next_cursor"] is None
    assert admin("GET", "/api/v1/documents?scope=acme&limit=3").json["next_cursor"] is None
    by_state = admin("GET", "/api/v1/documents?scope=acme&state=quarantined").json["items"]
    assert [item["document_id"] for item in by_state] == ["minutes"]
    by_words = admin("GET", "/api/v1/documents?scope=acme&q=MERGER").json["items"]
    assert [item["document_id"] for item in by_words] == ["merger"]
    assert admin("GET", "/api/v1/documents?scope=acme&q=%25").json["items"] == []


@pytest.mark.parametrize("cursor", ["x", "!!!", "LTE", "bm8", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5"])
def test_a_cursor_that_is_not_ours_is_refused(admin: Client, cursor: str) -> None:
    answer = admin("GET", f"/api/v1/documents?scope=acme&cursor={cursor}")
    assert answer.status == 400
    assert "next_cursor" in answer.json["next_step"]


def test_no_path_of_the_machine_is_shown(admin: Client, installation: Installation) -> None:
    home = str(installation.settings.home.parent)
    for path in ("?scope=acme", "/acme/leave", "/acme/leave/history"):
        assert home not in admin("GET", f"/api/v1/documents{path}").text


def test_a_body_comes_with_blocks_and_passages_in_its_own_offsets(viewer: Client) -> None:
    shown = viewer("GET", "/api/v1/documents/acme/leave/versions/1/body").json
    kinds = [block["kind"] for block in shown["blocks"]]
    assert kinds == ["heading", "paragraph"]
    second = shown["blocks"][1]
    text = shown["body"][second["char_start"] : second["char_end"]]
    assert text.startswith("Employees take thirty days")
    assert second["heading_path"] == ["Annual leave"]
    place = shown["passages"][0]
    passage = viewer("GET", f"/api/v1/passages/acme/{place['passage_id']}").json
    assert shown["body"][place["char_start"] : place["char_end"]] == passage["text"]


@pytest.mark.requirement("P-76")
def test_a_passage_is_fetched_with_its_context_and_a_link(viewer: Client) -> None:
    hit = found(viewer, "thirty days of leave")["hits"][0]
    around = viewer("GET", f"/api/v1/passages/acme/{hit['passage_id']}/context?before=1&after=1")
    assert around.json["passage"]["text"] == hit["text"]
    assert around.json["link"].startswith("/#/d/acme/leave")
    assert (
        viewer("GET", f"/api/v1/passages/acme/{hit['passage_id']}/context?before=51").status == 422
    )


def test_a_search_without_a_scope_is_refused_and_says_so(viewer: Client) -> None:
    for body in ({"query": "leave"}, {"query": "leave", "scope": ""}):
        answer = viewer("POST", "/api/v1/search", json=body)
        assert (answer.status, answer.json["code"]) == (400, "scope_required")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scope": "acme", "query": "a\u0000b"}, 422),
        ({"scope": "acme", "query": "x" * 8001}, 422),
        ({"scope": "acme", "query": "x", "k": 0}, 422),
        ({"scope": "acme", "query": "x", "unknown": 1}, 422),
        ({"scope": "acme", "query": "x", "as_of": "yesterday"}, 422),
        ({"scope": "Not A Scope", "query": "x"}, 400),
        ({"scope": "acme", "query": "x", "audiences": ["no such, name"]}, 400),
    ],
)
def test_bad_input_is_a_problem_with_a_next_step(
    viewer: Client, body: dict[str, Any], status: int
) -> None:
    answer = viewer("POST", "/api/v1/search", json=body)
    assert answer.status == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["next_step"]
    assert answer.json["status"] == status


def test_filters_act(admin: Client) -> None:
    everything = documents_of(found(admin, "leave merger"))
    assert everything == {"leave", "merger"}
    assert documents_of(found(admin, "leave merger", document_ids=["merger"])) == {"merger"}
    assert documents_of(found(admin, "leave", heading_prefix=["Merger plans"])) == {"merger"}
    assert documents_of(found(admin, "leave", language="de")) == set()
    assert documents_of(found(admin, "leave", media_type="application/pdf")) == set()
    assert documents_of(found(admin, "leave", as_of="2001-01-01")) == set()


@pytest.mark.requirement("O-49")
def test_a_search_is_logged_under_the_callers_correlation_id(
    viewer: Client, installation: Installation
) -> None:
    import psycopg

    answer = viewer(
        "POST",
        "/api/v1/search",
        json={"query": "leave", "scope": "acme"},
        headers={"X-Correlation-ID": "caller-0001"},
    )
    assert answer.json["correlation_id"] == "caller-0001"
    assert answer.headers["x-correlation-id"] == "caller-0001"
    with psycopg.connect(installation.settings.database_url) as conn:
        row = conn.execute(
            "select actor from kb.retrieval_log where correlation_id = 'caller-0001'"
        ).fetchone()
    assert row is not None
    assert str(row[0]).startswith("key:")
