"""Coming in: keys, sessions, CSRF, rotation, revocation, the last administrator, no secret."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from kb.access import keys, members
from kb.access.secret import Secret
from kb_resources.errors import PolicyError
from kb_resources.settings import Settings
from kb_resources.store import access
from kb_resources.store.pool import Database
from tests.read.http.conftest import (
    SECRET,
    Client,
    Clock,
    Installation,
    Served,
    make_key,
    serving,
)


@pytest.fixture
def own(settings: Settings, clock: Clock) -> Iterator[Served]:
    """A server over an empty installation, whose clock the test moves."""
    with serving(settings, clock=clock, run_worker=False) as running:
        yield running


@pytest.fixture
def admin(own: Served) -> Client:
    return own.client.with_key(make_key(own.settings, "admin", scopes=None))


def created(admin: Client, **values: object) -> tuple[str, str]:
    given = {"name": "a key", "role": "viewer", "scopes": ["acme"], **values}
    answer = admin("POST", "/api/v1/keys", json=given)
    assert answer.status == 201, answer.text
    return answer.json["key_id"], answer.json["key"]


def test_a_key_says_who_it_is_and_what_it_opens(served: Served, installation: Installation) -> None:
    me = served.client.with_key(installation.keys["red"])("GET", "/api/v1/me").json
    assert me["role"] == "viewer"
    assert me["csrf"] is None
    assert me["scopes"] == [{"name": "acme", "title": "acme", "documents": 3}]
    assert me["audiences"] == ["can:read", "red", f"user:{me['actor']}"]


@pytest.mark.parametrize(
    "token",
    ["", "kb_", "nonsense", "kb_000000000000_" + "A" * 43, "kb_" + "x" * 500, "kb_ä"],
)
def test_what_is_no_key_opens_nothing(served: Served, token: str) -> None:
    answer = served.client.with_key(token)("GET", "/api/v1/me")
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.requirement("P-56")
def test_a_key_with_one_character_changed_opens_nothing(
    served: Served, installation: Installation
) -> None:
    key = installation.keys["admin"]
    for at in range(len(key) - 43, len(key), 7):
        changed = key[:at] + ("A" if key[at] != "A" else "B") + key[at + 1 :]
        assert served.client.with_key(changed)("GET", "/api/v1/me").status == 401


@pytest.mark.requirement("P-56")
def test_keys_are_stored_as_keyed_hashes_and_compared_in_constant_time(
    own: Served, admin: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id, token = created(admin)
    with database.transaction("owner") as conn:
        row = conn.execute(
            "select k::text from kb.api_key k where key_id = %s", [key_id]
        ).fetchone()
    assert row is not None
    assert token not in str(row[0])
    assert token.split("_", 2)[2] not in str(row[0])  # the secret may hold underscores itself
    compared = []
    monkeypatch.setattr(keys, "same", lambda a, b: compared.append((a, b)) or a == b)
    assert own.client.with_key(token)("GET", "/api/v1/me").status == 200
    assert (Secret(SECRET.encode()).digest("api-key", token),) * 2 in compared
    other = Secret(b"another secret of more than 32 bytes").digest("api-key", token)
    assert other != compared[0][0]


@pytest.mark.requirement("P-56")
@pytest.mark.parametrize("path", ["/ready", "/metrics", "/", "/api/v1/me", "/api/v1/openapi.json"])
def test_without_a_secret_only_health_answers(settings: Settings, path: str) -> None:
    with serving(replace(settings, secret=""), run_worker=False) as bare:
        assert bare.client("GET", "/health").status == 200
        answer = bare.client("GET", path)
        assert answer.status == 503
        assert answer.json["code"] == "no_secret"
        assert answer.headers["Retry-After"]


def test_a_key_expires(own: Served, admin: Client, clock: Clock) -> None:
    until = clock.now + timedelta(hours=1)
    _, token = created(admin, expires_at=until.isoformat())
    assert own.client.with_key(token)("GET", "/api/v1/me").status == 200
    clock.pass_by(hours=1)
    assert own.client.with_key(token)("GET", "/api/v1/me").status == 401


def test_a_key_is_rotated_without_a_gap(own: Served, admin: Client, clock: Clock) -> None:
    key_id, old = created(admin)
    answer = admin("POST", f"/api/v1/keys/{key_id}/rotate", json={"overlap_s": 600})
    new = answer.json["key"]
    for token in (old, new):
        assert own.client.with_key(token)("GET", "/api/v1/me").json["actor"] == f"key:{key_id}"
    clock.pass_by(minutes=11)
    assert own.client.with_key(old)("GET", "/api/v1/me").status == 401
    assert own.client.with_key(new)("GET", "/api/v1/me").status == 200


@pytest.mark.requirement("P-53")
def test_revoking_a_key_ends_it_and_its_sessions_at_once(own: Served, admin: Client) -> None:
    key_id, token = created(admin)
    browser = own.client.sign_in(token)
    assert browser("GET", "/api/v1/me").status == 200
    assert admin("DELETE", f"/api/v1/keys/{key_id}").status == 204
    assert own.client.with_key(token)("GET", "/api/v1/me").status == 401
    assert browser("GET", "/api/v1/me").status == 401
    assert admin("DELETE", f"/api/v1/keys/{key_id}").status == 404


@pytest.mark.requirement("P-51")
def test_a_session_cookie_is_random_and_closed_to_scripts(own: Served, admin: Client) -> None:
    answer = own.client.with_key(None)("POST", "/auth/session", json={"key": admin.key})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    value = cookie.partition(";")[0].partition("=")[2]
    assert len(value) == 43
    assert admin.key is not None
    assert admin.key not in cookie


@pytest.mark.requirement("P-51")
def test_the_session_table_opens_with_the_cookie_only(
    own: Served, admin: Client, database: Database
) -> None:
    browser = own.client.sign_in(str(admin.key))
    with database.transaction("owner") as conn:
        row = conn.execute("select session_hash, payload from kb.session").fetchone()
    assert row is not None
    cookie = browser.cookies["kb_session"]
    stored = bytes(row[0]) + bytes(row[1])  # type: ignore[arg-type]
    assert cookie.encode() not in stored
    assert str(browser.csrf).encode() not in stored
    secret = Secret(SECRET.encode())
    opened = secret.unseal("session-payload", bytes(row[1]), salt=cookie.encode())  # type: ignore[arg-type]
    assert str(browser.csrf).encode() in opened
    with pytest.raises(PolicyError):
        secret.unseal("session-payload", bytes(row[1]), salt=b"another cookie")  # type: ignore[arg-type]


@pytest.mark.requirement("P-53")
@pytest.mark.parametrize("overlap_s", [0, 600])
def test_a_session_ends_with_the_secret_it_was_opened_with(
    own: Served, admin: Client, clock: Clock, overlap_s: int
) -> None:
    key_id, token = created(admin)
    browser = own.client.sign_in(token)
    answer = admin("POST", f"/api/v1/keys/{key_id}/rotate", json={"overlap_s": overlap_s})
    assert browser("GET", "/api/v1/me").status == (200 if overlap_s else 401)
    fresh = own.client.sign_in(answer.json["key"])
    clock.pass_by(seconds=overlap_s + 1)
    assert browser("GET", "/api/v1/me").status == 401
    assert fresh("GET", "/api/v1/me").status == 200


def test_signing_out_ends_the_session(own: Served, admin: Client) -> None:
    browser = own.client.sign_in(str(admin.key))
    stolen = replace_cookies(browser)
    assert browser("DELETE", "/auth/session").status == 204
    assert "kb_session" not in browser.cookies
    assert stolen("GET", "/api/v1/me").status == 401


def test_a_session_expires(own: Served, admin: Client, clock: Clock) -> None:
    browser = own.client.sign_in(str(admin.key))
    clock.pass_by(hours=12, seconds=1)
    assert browser("GET", "/api/v1/me").status == 401


def test_a_change_out_of_a_browser_needs_the_csrf_token(own: Served, admin: Client) -> None:
    browser = own.client.sign_in(str(admin.key))
    right = browser.csrf
    wish = {"name": "made", "role": "viewer", "scopes": None}
    for wrong in (None, "", "wrong", str(right)[:-1]):
        browser.csrf = wrong
        answer = browser("POST", "/api/v1/keys", json=wish)
        assert (answer.status, answer.json["code"]) == (403, "csrf")
    browser.csrf = browser("GET", "/api/v1/me").json["csrf"]
    assert browser.csrf == right
    assert browser("POST", "/api/v1/keys", json=wish).status == 201


@pytest.mark.requirement("P-55")
def test_the_last_administrator_stays(own: Served, admin: Client) -> None:
    own_id = admin("GET", "/api/v1/me").json["actor"].removeprefix("key:")
    answer = admin("DELETE", f"/api/v1/keys/{own_id}")
    assert (answer.status, answer.json["code"]) == (409, "last_admin")
    created(admin, name="second", role="admin", scopes=None)
    assert admin("DELETE", f"/api/v1/keys/{own_id}").status == 204


@pytest.mark.requirement("P-55")
def test_two_administrators_cannot_remove_each_other_at_the_same_time(
    settings: Settings, database: Database
) -> None:
    for subject in ("anna", "boris"):
        members.put(database, subject, name="", role="admin", scopes=None, audiences=(), by="test")
    outcomes: list[str] = []
    together = threading.Barrier(2)

    def remove(subject: str) -> None:
        together.wait()
        try:
            members.remove(database, subject, by="test")
            outcomes.append("removed")
        except PolicyError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=remove, args=[name]) for name in ("anna", "boris")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["last_admin", "removed"]


@pytest.mark.parametrize(
    "beyond",
    [
        {"role": "system"},
        {"scopes": None},
        {"scopes": ["acme", "other"]},
    ],
)
def test_nobody_gives_more_than_they_have(own: Served, beyond: dict[str, object]) -> None:
    limited = own.client.with_key(make_key(own.settings, "admin"))
    given = {"name": "more", "role": "viewer", "scopes": ["acme"], **beyond}
    answer = limited("POST", "/api/v1/keys", json=given)
    assert (answer.status, answer.json["code"]) == (403, "beyond_giver")


def test_a_scoped_administrator_neither_sees_nor_ends_keys_beyond_the_scope(
    own: Served, admin: Client
) -> None:
    wide, _ = created(admin, name="wide", scopes=None)
    limited = own.client.with_key(make_key(own.settings, "admin"))
    listed = [item["key_id"] for item in limited("GET", "/api/v1/keys").json["items"]]
    assert wide not in listed
    assert limited("DELETE", f"/api/v1/keys/{wide}").status == 404
    assert limited("POST", f"/api/v1/keys/{wide}/rotate").status == 404


def test_keys_are_listed_page_by_page_without_secrets(own: Served, admin: Client) -> None:
    names = {created(admin, name=f"key {n}")[0] for n in range(5)}
    seen, cursor = [], ""
    while cursor is not None:
        page = admin("GET", f"/api/v1/keys?limit=2{cursor and f'&cursor={cursor}'}").json
        assert len(page["items"]) == 2
        seen += page["items"]
        cursor = page["next_cursor"]
    assert names < {item["key_id"] for item in seen}
    assert len(seen) == len({item["key_id"] for item in seen}) == 6
    assert not any("hash" in name for name in seen[0])


@pytest.mark.requirement("P-19")
def test_an_actor_header_counts_beside_a_key_only(own: Served, admin: Client) -> None:
    spoken = admin("GET", "/api/v1/me", headers={"X-KB-Actor": "user:anna"}).json["actor"]
    assert spoken.startswith("user:anna via key:")
    browser = own.client.sign_in(str(admin.key))
    named = browser("GET", "/api/v1/me", headers={"X-KB-Actor": "user:anna"}).json["actor"]
    assert named.startswith("key:")
    forged = own.client.with_key(None)("GET", "/api/v1/me", headers={"X-KB-Actor": "user:anna"})
    assert forged.status == 401
    assert admin("GET", "/api/v1/me", headers={"X-KB-Actor": "two words"}).status == 400


@pytest.mark.requirement("P-19")
def test_each_change_of_access_is_logged_with_its_actor(
    own: Served, admin: Client, database: Database
) -> None:
    headers = {"X-KB-Actor": "user:anna"}
    made = admin(
        "POST",
        "/api/v1/keys",
        json={"name": "x", "role": "viewer", "scopes": None},
        headers=headers,
    )
    key_id = made.json["key_id"]
    admin("POST", f"/api/v1/keys/{key_id}/rotate", headers=headers)
    admin("DELETE", f"/api/v1/keys/{key_id}", headers=headers)
    with database.transaction("app") as conn:
        events = [e for e in access.list_events(conn) if e["subject"] == key_id]
    assert [event["event"] for event in events] == ["key_created", "key_rotated", "key_revoked"]
    assert {event["actor"].partition(" via ")[0] for event in events} == {"user:anna"}


def test_the_log_of_access_cannot_be_rewritten(own: Served, admin: Client) -> None:
    created(admin)
    with (
        psycopg.connect(own.settings.database_url) as conn,
        pytest.raises(psycopg.DatabaseError, match="append-only"),
    ):
        conn.execute("update kb.access_event set actor = 'nobody'")


@pytest.mark.requirement("P-17")
@pytest.mark.parametrize("table", ["api_key", "member", "session", "access_event"])
def test_the_pipeline_may_not_read_who_may_come_in(database: Database, table: str) -> None:
    with pytest.raises(PolicyError), database.transaction("pipeline") as conn:
        conn.execute(f"select from kb.{table}")


def test_an_expired_administrator_does_not_count_as_one(
    settings: Settings, database: Database
) -> None:
    now = datetime.now(UTC)
    secret = Secret(SECRET.encode())
    lasting = make_key(settings, "admin").split("_")[1]
    keys.create(
        database,
        secret,
        name="brief",
        role="admin",
        scopes=None,
        audiences=(),
        expires_at=now + timedelta(microseconds=1),
        by="test",
        now=now,
    )
    with pytest.raises(PolicyError) as refused:
        keys.revoke(database, lasting, by="test")
    assert refused.value.code == "last_admin"


def replace_cookies(browser: Client) -> Client:
    """A thief's copy of a browser's cookies."""
    return Client(browser.base, browser.pool, cookies=dict(browser.cookies))
