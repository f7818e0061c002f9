"""One source of rights: a feed's permission keys open here what the model says they open."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from kb.access.identity import ALLOWED, Identity, Role, role_of
from kb.access.members import RoleFeed
from kb.access.sessions import member_identity
from kb.http.services import permission_map
from kb_resources.errors import InputError, PolicyError, UnavailableError
from kb_resources.model.audiences import (
    AudienceKind,
    Permission,
    PermissionMap,
    Person,
    audiences_of,
    check_publish,
    resolve,
)
from kb_resources.settings import load_settings

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
RENAMED = {"KB_PERMISSION_KEYS": "read=kb:see, create=kb:add, admin=kb:all"}
KEYS = {
    "default": {one: f"ai.{one.value}" for one in Permission},
    "renamed": {Permission.READ: "kb:see", Permission.CREATE: "kb:add", Permission.ADMIN: "kb:all"},
}
PEOPLE = {
    "owner": Person("ana", frozenset({"member"}), frozenset({"p1"}), frozenset({"c1"})),
    "chat reader": Person("bor", frozenset({"member"}), frozenset(), frozenset({"c1"})),
    "member": Person("cen", frozenset({"member"}), frozenset({"p2"})),
    "manager": Person("dan", frozenset({"admin"})),
    "outsider": Person("eva"),
}
DOCUMENTS = {
    AudienceKind.ORGANIZATION: audiences_of(AudienceKind.ORGANIZATION),
    AudienceKind.AGENT: audiences_of(AudienceKind.AGENT, "a1"),
    AudienceKind.PROJECT: audiences_of(AudienceKind.PROJECT, "p1", owner="ana"),
    AudienceKind.CHAT: audiences_of(AudienceKind.CHAT, "c1", owner="ana"),
    AudienceKind.USER: audiences_of(AudienceKind.USER, "ana"),
}


def identity(tmp_path: Path, person: Person, named: str) -> Identity | None:
    """The person as a feed with permission keys brings them in."""
    settings = load_settings(RENAMED if named == "renamed" else {})
    held = PermissionMap().of(person.roles)
    item = {
        "subject": person.id,
        "permissions": [KEYS[named][permission] for permission in held],
        "scopes": ["acme"],
        "audiences": [
            *(f"project:{name}" for name in person.projects),
            *(f"chat:{name}" for name in person.chats),
        ],
    }
    file = tmp_path / "roles.json"
    file.write_text(json.dumps({"issued_at": NOW.isoformat(), "members": [item]}))
    grant = RoleFeed(file, 60, permission_map(settings)).grant(person.id, NOW)
    return None if grant is None else member_identity(grant)


def reads(held: frozenset[str] | None, audiences: tuple[str, ...]) -> bool:
    return held is None or bool(held & set(audiences))


@pytest.mark.requirement("B-02", "B-03", "B-05")
@pytest.mark.parametrize("named", ["default", "renamed"])
@pytest.mark.parametrize(("who", "kind"), list(product(PEOPLE, DOCUMENTS)))
def test_every_cell_is_the_same_by_a_feed_and_by_the_model(
    tmp_path: Path, who: str, kind: AudienceKind, named: str
) -> None:
    person, audiences = PEOPLE[who], DOCUMENTS[kind]
    principal = resolve(person, PermissionMap())
    by_model = reads(None if "system" in principal.roles else principal.audiences, audiences)
    found = identity(tmp_path, person, named)
    if found is None:
        assert who == "outsider"
        assert not by_model
        return
    names = found.visible_audiences()
    assert reads(None if names is None else frozenset(names), audiences) == by_model


@pytest.mark.requirement("B-05")
@pytest.mark.parametrize("named", ["default", "renamed"])
def test_what_is_not_ones_own_is_published_to_by_nobody_but_managers(
    tmp_path: Path, named: str
) -> None:
    """The same names as `check_publish` refuses for their kind."""
    foreign = ("user:zoe", "project:p9", "chat:c9", "agent:a1")
    for who in ("owner", "chat reader", "member"):
        member = identity(tmp_path, PEOPLE[who], named)
        assert member is not None
        assert member.role is Role.EDITOR
        for name in foreign:
            with pytest.raises(PolicyError):
                member.publish_to([name])
            with pytest.raises(PolicyError):
                check_publish(PEOPLE[who], PermissionMap(), [name])
        assert member.publish_to(None) == (f"user:{PEOPLE[who].id}",)
    manager = identity(tmp_path, PEOPLE["manager"], named)
    assert manager is not None
    assert manager.publish_to(foreign) == tuple(sorted(foreign))


@pytest.mark.requirement("B-05")
def test_roles_and_permissions_are_one_table() -> None:
    assert role_of(()) is None
    assert role_of({Permission.CREATE}) is None
    for role in (Role.VIEWER, Role.EDITOR, Role.ADMIN):
        assert role_of(ALLOWED[role]) is role
    assert ALLOWED[Role.SYSTEM] == ALLOWED[Role.ADMIN] == frozenset(Permission)


@pytest.mark.requirement("B-05")
def test_keys_of_another_name_open_nothing(tmp_path: Path) -> None:
    item = {"subject": "ana", "permissions": ["ai.read"], "scopes": ["acme"]}
    file = tmp_path / "roles.json"
    file.write_text(json.dumps({"issued_at": NOW.isoformat(), "members": [item]}))
    renamed = permission_map(load_settings(RENAMED))
    assert RoleFeed(file, 60, renamed).grant("ana", NOW) is None
    item.pop("permissions")
    file.write_text(json.dumps({"issued_at": NOW.isoformat(), "members": [item]}))
    with pytest.raises(UnavailableError):
        RoleFeed(file, 60, renamed).grant("ana", NOW)


@pytest.mark.parametrize(
    "text", ["read=a,create=b", "read=a,create=a,admin=c", "read=,create=b,admin=c", "see=a"]
)
def test_a_setting_that_leaves_a_permission_open_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="KB_PERMISSION_KEYS"):
        load_settings({"KB_PERMISSION_KEYS": text})
