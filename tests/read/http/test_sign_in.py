"""Signing in at a real identity provider process: who gets in, as what, and until when.

Tokens that must not be believed are in `test_identity_tokens`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import urllib3

from kb.access.members import RoleFeed
from kb.access.oidc import Provider, local_path
from kb_resources.errors import UnavailableError
from kb_resources.settings import Settings
from kb_resources.store.pool import Database
from tests.read.http.conftest import (
    Answer,
    Client,
    Clock,
    Served,
    free_port,
    make_key,
    make_member,
    serving,
)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of an identity provider that runs as a process of its own."""
    port = free_port()
    command = Path(sys.executable).with_name("oidc-provider-mock")
    provider = subprocess.Popen(
        [str(command), "--port", str(port), "--require-nonce", "true"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 240
        while True:
            try:
                urllib3.request("GET", f"{base}/.well-known/openid-configuration", retries=False)
                break
            except urllib3.exceptions.HTTPError:
                assert provider.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        found = urllib3.request("GET", f"{base}/.well-known/openid-configuration").json()
        yield str(found["issuer"])
    finally:
        provider.terminate()
        provider.wait()


@pytest.fixture
def own(settings: Settings, issuer: str, clock: Clock) -> Iterator[Served]:
    chosen = replace(
        settings, oidc_issuer=issuer, oidc_client_id="kb", oidc_client_secret="client secret"
    )
    with serving(chosen, clock=clock, run_worker=False) as running:
        yield running


def to_provider(browser: Client, go_to: str = "/") -> str:
    """Start a sign-in; the address the browser is sent to."""
    answer = browser("GET", f"/auth/login?{urlencode({'next': go_to})}")
    assert answer.status == 303, answer.text
    return answer.headers["location"]


def say_who(browser: Client, address: str, subject: str) -> str:
    """What a person does at the provider; the address that it sends the browser back to."""
    answer = browser.with_key(None)(
        "POST",
        address,
        body=urlencode({"sub": subject}),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status in (302, 303), answer.text[:500]
    return answer.headers["location"]


def come_back(browser: Client, location: str) -> Answer:
    parts = urlsplit(location)
    return browser("GET", f"{parts.path}?{parts.query}")


def signed_in(own: Served, subject: str) -> Client:
    browser = own.client.with_key(None)
    answer = come_back(browser, say_who(browser, to_provider(browser), subject))
    assert answer.status == 303, answer.text
    return browser


@pytest.mark.requirement("P-51", "P-52")
def test_a_member_signs_in_and_may_do_what_the_role_allows(own: Served) -> None:
    make_member(own.settings, "anna", "editor", name="Anna", audiences=["red"])
    browser = own.client.with_key(None)
    address = to_provider(browser, "/#/d/acme")
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["response_type"] == ["code"]
    assert len(query["state"][0]) >= 43
    answer = come_back(browser, say_who(browser, address, "anna"))
    assert (answer.status, answer.headers["location"]) == (303, "/#/d/acme")
    me = browser("GET", "/api/v1/me").json
    assert (me["actor"], me["role"], me["name"]) == ("user:anna", "editor", "Anna")
    assert me["audiences"] == ["can:read", "red", "user:anna"]
    assert browser("GET", "/api/v1/keys").status == 403


@pytest.mark.requirement("P-52")
def test_somebody_without_a_role_has_no_access(own: Served) -> None:
    browser = own.client.with_key(None)
    answer = come_back(browser, say_who(browser, to_provider(browser), "stranger"))
    assert (answer.status, answer.json["code"]) == (403, "no_access")
    assert "kb_session" not in browser.cookies


@pytest.mark.requirement("P-53")
def test_removing_a_member_ends_the_session_at_once(own: Served, database: Database) -> None:
    make_member(own.settings, "root", "admin", scopes=None)
    make_member(own.settings, "anna", "viewer")
    browser = signed_in(own, "anna")
    assert browser("GET", "/api/v1/me").status == 200
    admin = own.client.with_key(make_key(own.settings, "admin", scopes=None))
    assert admin("DELETE", "/api/v1/members/anna").status == 204
    assert browser("GET", "/api/v1/me").status == 401


def test_a_changed_role_holds_from_the_next_request_on(own: Served) -> None:
    make_member(own.settings, "root", "admin", scopes=None)
    make_member(own.settings, "anna", "admin")
    browser = signed_in(own, "anna")
    assert browser("GET", "/api/v1/keys").status == 200
    make_member(own.settings, "anna", "viewer")
    assert browser("GET", "/api/v1/keys").status == 403


def test_a_session_ends_by_itself(own: Served, clock: Clock) -> None:
    make_member(own.settings, "anna", "viewer")
    browser = signed_in(own, "anna")
    clock.pass_by(hours=12, seconds=1)
    assert browser("GET", "/api/v1/me").status == 401


@pytest.mark.requirement("P-51")
def test_an_answer_counts_once_in_its_own_browser_and_in_time(own: Served, clock: Clock) -> None:
    make_member(own.settings, "anna", "viewer")
    browser = own.client.with_key(None)
    location = say_who(browser, to_provider(browser), "anna")
    other = own.client.with_key(None)
    assert come_back(other, location).json["code"] == "not_sealed"
    to_provider(other)
    assert come_back(other, location).json["code"] == "sign_in_refused"
    clock.pass_by(minutes=11)
    assert come_back(browser, location).json["code"] == "sign_in_refused"
    clock.pass_by(minutes=-11)
    assert come_back(browser, location).status == 303
    browser.cookies.pop("kb_session")
    to_provider(browser)
    assert come_back(browser, location).json["code"] == "sign_in_refused"


def test_an_error_of_the_provider_is_told(own: Served) -> None:
    browser = own.client.with_key(None)
    state = parse_qs(urlsplit(to_provider(browser)).query)["state"][0]
    answer = browser("GET", f"/auth/callback?{urlencode({'state': state, 'error': 'denied'})}")
    assert (answer.status, answer.json["code"]) == (403, "sign_in_refused")


@pytest.mark.parametrize(
    "elsewhere", ["//evil.example/", "https://evil.example/", "/\\evil", "evil", "/a\nb", ""]
)
def test_after_signing_in_the_browser_stays_here(elsewhere: str) -> None:
    assert local_path(elsewhere) == "/"
    assert local_path("/#/search/acme?q=leave") == "/#/search/acme?q=leave"


@pytest.mark.requirement("P-52")
def test_a_stale_feed_of_roles_answers_503(
    settings: Settings, issuer: str, clock: Clock, tmp_path: Path
) -> None:
    feed = tmp_path / "roles.json"

    def issue(at: datetime, *, subject: str = "anna") -> None:
        member = {"subject": subject, "role": "viewer", "scopes": ["acme"], "audiences": []}
        draft = feed.with_suffix(".new")
        draft.write_text(json.dumps({"issued_at": at.isoformat(), "members": [member]}))
        draft.rename(feed)

    issue(clock.now)
    chosen = replace(
        settings,
        oidc_issuer=issuer,
        oidc_client_id="kb",
        oidc_client_secret="client secret",
        roles_file=feed,
    )
    with serving(chosen, clock=clock, run_worker=False) as own:
        browser = signed_in(own, "anna")
        assert browser("GET", "/api/v1/me").status == 200
        clock.pass_by(seconds=59)
        assert browser("GET", "/api/v1/me").status == 200
        clock.pass_by(seconds=2)
        answer = browser("GET", "/api/v1/me")
        assert (answer.status, answer.json["code"]) == (503, "roles_stale")
        issue(clock.now)
        assert browser("GET", "/api/v1/me").status == 200
        issue(clock.now, subject="somebody else")
        assert browser("GET", "/api/v1/me").status == 401
        feed.write_text("{")
        assert browser("GET", "/api/v1/me").status == 503
        key = own.client.with_key(make_key(chosen, "viewer"))
        assert key("GET", "/api/v1/me").status == 200


def _counting(read: list[bytes]) -> Callable[[Path], bytes]:
    def read_bytes(file: Path) -> bytes:
        with file.open("rb") as opened:
            read.append(opened.read())
        return read[-1]

    return read_bytes


def test_a_feed_is_read_once_for_each_time_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    path, draft = tmp_path / "roles.json", tmp_path / "draft"

    def write(*roles: str) -> None:
        members = [{"subject": "ann", "role": role} for role in roles]
        draft.write_text(json.dumps({"issued_at": now.isoformat(), "members": members}))
        draft.replace(path)

    read: list[bytes] = []
    monkeypatch.setattr(Path, "read_bytes", _counting(read))
    feed = RoleFeed(path, 60)
    write("viewer", "admin")
    assert [feed.grant(name, now) for name in ("ben", "cid")] == [None, None]
    ann = feed.grant("ann", now)
    assert (ann and ann.role, len(read)) == ("viewer", 1)  # of two, the first
    write("editor")
    ann = feed.grant("ann", now)
    assert (ann and ann.role, len(read)) == ("editor", 2)
    with pytest.raises(UnavailableError):
        feed.grant("ann", now + timedelta(seconds=61))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"issued_at": "2026-01-01T00:00:00", "members": []}',
        '{"issued_at": "2026-01-01T00:00:00Z", "members": [{"subject": "a", "role": "king"}]}',
        '{"issued_at": "2026-01-01T00:00:00Z", "members": [{"role": "viewer"}]}',
    ],
)
def test_a_feed_that_cannot_be_read_lets_nobody_in(tmp_path: Path, content: str) -> None:
    path = tmp_path / "roles.json"
    path.write_text(content)
    with pytest.raises(UnavailableError):
        RoleFeed(path, 60).grant("a", datetime(2026, 1, 1, tzinfo=UTC))


def test_a_provider_that_is_away_keeps_nobody_else_waiting(settings: Settings) -> None:
    """Strangers wait for it on threads of their own, however many they are."""
    answered = threading.Event()

    class Stuck:
        def get(self, url: str) -> tuple[int, bytes]:
            assert answered.wait(120)
            return 503, url.encode()

        post_form = None

    with serving(settings, run_worker=False) as own:
        services = own.app.state.services
        stuck = Provider("https://id.example", "kb", "", cast(Any, Stuck()))
        own.app.state.services = replace(services, provider=stuck)
        viewer = own.client.with_key(make_key(settings, "viewer"))
        strangers = [
            threading.Thread(target=own.client, args=("GET", "/auth/login")) for _ in range(30)
        ]
        try:
            for stranger in strangers:
                stranger.start()
            while services.sign_ins.inside < len(strangers):
                time.sleep(0.01)
            assert viewer("GET", "/api/v1/me").status == 200
        finally:
            answered.set()
            for stranger in strangers:
                stranger.join()
