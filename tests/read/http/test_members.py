"""Members: who may give which role to whom, and that somebody who administers is always left."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from kb.access import members, sessions
from kb.access.secret import Secret
from kb_resources.errors import KbError
from kb_resources.settings import Settings
from kb_resources.store import access, erasure
from kb_resources.store.pool import Database
from kb_resources.store.server_binaries import wheel_bin_dir
from tests.read.http.conftest import SECRET, make_key, make_member, serving


def test_members_are_managed_within_ones_own_scopes(settings: Settings, database: Database) -> None:
    with serving(settings, run_worker=False) as own:
        root = own.client.with_key(make_key(settings, "admin", scopes=None))
        limited = own.client.with_key(make_key(settings, "admin"))
        wish = {"role": "admin", "scopes": None}
        assert root("PUT", "/api/v1/members/oidc%7Croot", json=wish).status == 204
        assert limited("PUT", "/api/v1/members/anna", json=wish).status == 403
        assert limited("GET", "/api/v1/members").json["items"] == []
        assert limited("DELETE", "/api/v1/members/oidc%7Croot").status == 404
        wish = {"role": "viewer", "scopes": ["acme"]}
        assert limited("PUT", "/api/v1/members/oidc%7Croot", json=wish).status == 404
        assert limited("PUT", "/api/v1/members/anna", json=wish).status == 204
        [item] = limited("GET", "/api/v1/members").json["items"]
        assert (item["subject"], item["created_by"].split(":")[0]) == ("anna", "key")


@pytest.mark.requirement("P-55")
def test_the_last_member_who_administers_stays(settings: Settings, database: Database) -> None:
    make_member(settings, "anna", "admin", scopes=None)
    for act in (
        lambda: members.remove(database, "anna", by="test"),
        lambda: make_member(settings, "anna", "viewer"),
    ):
        with pytest.raises(KbError) as refused:
            act()
        assert refused.value.code == "last_admin"
    make_key(settings, "admin", expires_at=datetime.now(UTC) + timedelta(days=1))
    members.remove(database, "anna", by="test")


@pytest.mark.requirement("P-20", "P-53")
def test_a_forgotten_member_is_signed_out_and_named_nowhere(
    settings: Settings, database: Database
) -> None:
    make_member(settings, "root", "admin", scopes=None)
    make_member(settings, "zora9", "editor", name="Zora Quibblewarbler")
    with serving(settings, run_worker=False) as own:
        services = own.app.state.services
        grant = services.authoriser.grant("zora9", datetime.now(UTC))
        opened = sessions.open_for_member(
            database, Secret(SECRET.encode()), grant, datetime.now(UTC)
        )
        browser = own.client.with_key(None)
        browser.cookies["kb_session"] = opened.cookie
        assert browser("GET", "/api/v1/me").json["actor"] == "user:zora9"
        with database.transaction("pipeline") as conn:
            counts = erasure.forget_actor(conn, "user:zora9", "deleted-user")
        assert (counts["session"], counts["member"]) == (1, 1)
        assert browser("GET", "/api/v1/me").status == 401
    dumped = subprocess.run(
        [wheel_bin_dir() / "pg_dump", "--dbname", settings.database_url],
        capture_output=True,
        check=True,
    ).stdout
    assert b"zora9" not in dumped
    assert b"Quibblewarbler" not in dumped
    assert b"deleted-user" in dumped


@pytest.mark.requirement("P-20", "P-55")
def test_the_last_administrator_is_not_forgotten(settings: Settings, database: Database) -> None:
    make_member(settings, "root", "admin", scopes=None)
    with pytest.raises(KbError) as refused, database.transaction("pipeline") as conn:
        erasure.forget_actor(conn, "user:root", "deleted-user")
    assert refused.value.code == "last_admin"
    with database.transaction("app") as conn:
        assert access.get_member(conn, "root") is not None
