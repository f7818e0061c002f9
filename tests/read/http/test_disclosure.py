"""What answers give away or cost: hidden titles, numbers of others, paths, advice, long inputs."""

from __future__ import annotations

import ast
import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kb import advice
from kb.access.bootstrap import bootstrap
from kb.access.secret import ensure_secret
from kb.http import problems, uploads
from kb_resources.errors import InputError, UnavailableError
from kb_resources.settings import Settings
from kb_resources.store.pool import Database
from tests.read.http.conftest import (
    ROOT,
    Client,
    Installation,
    Served,
    make_key,
    make_member,
    serving,
)


@pytest.fixture
def viewer(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["viewer"])


@pytest.fixture
def editor(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["editor"])


def test_nobody_finds_a_document_by_a_title_they_are_not_shown(viewer: Client) -> None:
    def found(q: str) -> list[str]:
        items = viewer("GET", f"/api/v1/documents?scope=acme&q={q}").json["items"]
        return [item["document_id"] for item in items]

    [held] = [
        item
        for item in viewer("GET", "/api/v1/documents?scope=acme").json["items"]
        if item["document_id"] == "minutes"
    ]
    assert held["title"] is None
    assert found("Support") == []
    assert found("minutes") == ["minutes"]
    assert found("Annual") == ["leave"]


def test_the_number_of_documents_is_of_those_one_may_read(
    served: Served, installation: Installation
) -> None:
    def count(key: str) -> int:
        me = served.client.with_key(installation.keys[key])("GET", "/api/v1/me").json
        return int(me["scopes"][0]["documents"])

    assert [count(key) for key in ("viewer", "red", "admin")] == [2, 3, 3]


def test_a_stranger_hears_no_address_of_a_database_that_is_away(settings: Settings) -> None:
    with serving(settings, run_worker=False) as own:
        told = "connection to /secret/place/.s.PGSQL.5432 failed"

        def away(*_: Any, **__: Any) -> Any:
            raise UnavailableError(told, next_step="Look at /secret/place.", code="unavailable")

        key = make_key(settings, "viewer")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Database, "transaction", away)
            for call in (
                own.client("GET", "/ready"),
                own.client.with_key(key)("GET", "/api/v1/me"),
                own.client("POST", "/auth/session", json={"key": key}),
                own.client.with_key(key)("POST", "/mcp", json={}),
            ):
                assert (call.status, call.json["code"]) == (503, "unavailable")
                assert "secret" not in call.text


def test_what_strangers_send_to_sign_in_is_small_and_answered_shortly(served: Served) -> None:
    fields = {f"k{number}": 1 for number in range(300)}
    small = dict(itertools.islice(fields.items(), 200))
    answer = served.client("POST", "/auth/session", json=small)
    assert answer.status == 422
    assert len(answer.json["errors"]) <= problems.MAX_ERRORS
    assert len(answer.body) < 8000
    wide = json.dumps({f"{number:x}": 1 for number in range(100_000)})
    answer = served.client("POST", "/auth/session", body=wide)
    assert (answer.status, answer.json["code"]) == (413, "request_too_large")
    assert served.client("POST", "/auth/session", json={"key": "x" * 5000}).status == 413


def test_unknown_fields_are_counted_before_each_is_told(viewer: Client) -> None:
    wide = {"query": "leave", "scope": "acme"} | {f"k{number}": 1 for number in range(60_000)}
    answer = viewer("POST", "/api/v1/search", json=wide)
    assert answer.status == 422
    assert len(answer.body) < 4000
    few = {"query": "leave", "scope": "acme"} | {"x" * 3000: 1, "b": 1}
    answer = viewer("POST", "/api/v1/search", json=few)
    assert [len(one["at"]) <= 210 for one in answer.json["errors"]] == [True, True]


@pytest.mark.parametrize(
    "at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "9999-12-31", "0001-01-01Z"]
)
def test_a_time_that_no_calendar_holds_is_refused_at_every_door(
    viewer: Client, editor: Client, at: str
) -> None:
    calls = [
        viewer("POST", "/api/v1/search", json={"query": "x", "scope": "acme", "as_of": at}),
        viewer("POST", "/api/v1/ask", json={"question": "x", "scope": "acme", "as_of": at}),
        viewer("GET", f"/api/v1/documents/acme/leave/intervals?as_of={at.replace('+', '%2B')}"),
        editor.upload("a.md", "# A\n\nText.", valid_from=at),
    ]
    assert [call.status for call in calls] == [422, 422, 422, 400]


def test_advice_over_http_names_no_command(viewer: Client, editor: Client) -> None:
    steps = {step for step in _next_steps() if not _for_operators(step)}
    assert len(steps) > 150
    told = [told_by(step) for step in steps for told_by in (_over_http, advice.over_mcp)]
    assert [step for step in told if "--" in step or "`kb" in step or "kb documents" in step] == []
    for call in (
        viewer("GET", "/api/v1/documents/acme/nothing"),
        viewer("POST", "/api/v1/search", json={"query": "leave"}),
        editor("POST", "/api/v1/reviews/acme/nothing/release", json=_looked_at()),
    ):
        assert call.status >= 400
        assert "kb " not in call.json["next_step"]
        assert "--" not in call.json["next_step"]


def _over_http(step: str) -> str:
    return advice.over_http(step, 400)


def _looked_at() -> dict[str, Any]:
    return {"reason": "x", "version": 1, "digest": "0" * 64, "body_digest": None}


def _for_operators(step: str) -> bool:
    return advice.over_http(step, 400) == "Ask whoever runs this server."


def _next_steps() -> set[str]:
    """All literal texts that errors of our tree are raised with as a next step."""
    found = set()
    for folder in ("kb", "kb_resources"):
        for file in (ROOT / folder).rglob("*.py"):
            if (ROOT / "kb" / "cli") in file.parents:
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.keyword) and node.arg == "next_step":
                    found |= {
                        part.value
                        for part in ast.walk(node.value)
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    }
    return found


def test_a_removal_says_why(editor: Client) -> None:
    assert editor("DELETE", "/api/v1/documents/acme/leave").status == 422


@pytest.mark.requirement("P-56")
def test_an_installation_without_an_administrator_gets_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb.access import bootstrap as module
    from kb.access import keys

    local = replace(settings, database_url="")
    monkeypatch.setattr(module, "open_database", lambda _: _open(settings))
    secret, _ = ensure_secret(local)
    make_key(settings, "viewer")
    make_key(settings, "admin", expires_at=datetime.now(UTC) + timedelta(hours=1))
    first = bootstrap(local)
    assert first is not None, "keys of others, or for one scope, are no administrator"
    assert bootstrap(local) is None
    with _open(settings) as database:
        found = keys.recognise(database, secret, first.token, datetime.now(UTC))
        assert found is not None
        assert (found.role.label, found.scopes) == ("admin", None)


def test_a_member_who_administers_is_an_administrator(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb.access import bootstrap as module

    monkeypatch.setattr(module, "open_database", lambda _: _open(settings))
    make_member(settings, "ana", "admin", scopes=None)
    assert bootstrap(replace(settings, database_url="")) is None


def _open(settings: Settings) -> Any:
    return Database.external(settings.database_url, app_dsn=settings.app_database_url)


def test_a_start_drops_what_a_killed_server_left_and_nothing_that_waits(
    settings: Settings,
) -> None:
    with serving(settings, run_worker=False) as first:
        writer = first.client.with_key(make_key(settings, "editor"))
        job_id = writer.upload("a.md", "# A\n\nText.").json["job_id"]
    spools = uploads.spool_folder(settings)
    (spools / "0123456789abcdef01234567").mkdir()
    (spools / "0123456789abcdef01234567" / "content").write_text("left by a kill")
    coming, folder = uploads.new_spool(settings)  # another server is filling this one
    with serving(settings, run_worker=False):
        assert {path.name for path in spools.iterdir()} == {job_id, coming}
    uploads.received(folder)
    with serving(settings, run_worker=False):
        assert {path.name for path in spools.iterdir()} == {job_id}


def test_a_quote_of_any_length_is_answered_at_once(
    viewer: Client, served: Served, installation: Installation
) -> None:
    query = {"query": "annual leave", "scope": "acme"}
    passage_id = viewer("POST", "/api/v1/search", json=query).json["hits"][0]["passage_id"]
    given = {"scope": "acme", "passage_id": passage_id}
    call = viewer("POST", "/api/v1/citations/verify", json=given | {"quote": "leave " * 334})
    assert call.status == 422
    with pytest.raises(InputError, match="characters"):
        served.app.state.services.reader.citations.verify(
            "leave " * 334, passage_id, scope="acme", principal=_principal()
        )


def _principal() -> Any:
    from kb_resources.model import Principal

    return Principal("test:x", frozenset(), scopes=frozenset({"acme"}))
