"""Kinds of audiences: who reads what, cell by cell, and who may publish where."""

from __future__ import annotations

import pytest

from kb_resources.errors import InputError, PolicyError
from kb_resources.model.audiences import (
    AudienceKind,
    Permission,
    PermissionMap,
    Person,
    audiences_of,
    check_publish,
    initial_audiences,
    resolve,
)

RENAMED = PermissionMap(
    keys={Permission.READ: "kb:see", Permission.CREATE: "kb:add", Permission.ADMIN: "kb:all"},
    roles={
        "chief": frozenset({"kb:see", "kb:add", "kb:all"}),
        "staff": frozenset({"kb:see", "kb:add"}),
        "guest": frozenset({"kb:see"}),
    },
)


def test_the_default_permissions_are_those_of_owner_admin_and_member() -> None:
    given = PermissionMap()
    assert given.of({"owner"}) == given.of({"admin"}) == frozenset(Permission)
    assert given.of({"member"}) == {Permission.READ, Permission.CREATE}
    assert given.of({"visitor"}) == given.of(()) == frozenset()


@pytest.mark.requirement("B-05")
def test_renamed_keys_work() -> None:
    assert RENAMED.of({"staff"}) == {Permission.READ, Permission.CREATE}
    assert RENAMED.of({"member"}) == frozenset()
    assert "system" in resolve(Person("1", frozenset({"chief"})), RENAMED).roles
    check_publish(Person("1", frozenset({"staff"})), RENAMED, ["user:1"])
    with pytest.raises(PolicyError, match="kb:all"):
        check_publish(Person("1", frozenset({"staff"})), RENAMED, [])
    with pytest.raises(PolicyError, match="kb:add"):
        check_publish(Person("1", frozenset({"guest"})), RENAMED, ["user:1"])


@pytest.mark.parametrize(
    ("keys", "roles"),
    [
        ({Permission.READ: "a", Permission.CREATE: "b"}, {}),
        ({Permission.READ: "a", Permission.CREATE: "a", Permission.ADMIN: "c"}, {}),
        ({p: p.value for p in Permission}, {"x": frozenset({"other"})}),
    ],
)
def test_a_map_that_leaves_something_open_is_refused(
    keys: dict[Permission, str], roles: dict[str, frozenset[str]]
) -> None:
    with pytest.raises(InputError, match="permission map"):
        PermissionMap(keys, roles)


def test_only_the_organisation_needs_no_id() -> None:
    with pytest.raises(InputError):
        audiences_of(AudienceKind.ORGANIZATION, "1")
    for kind in set(AudienceKind) - {AudienceKind.ORGANIZATION}:
        with pytest.raises(InputError):
            audiences_of(kind)


@pytest.mark.requirement("B-04")
def test_an_upload_is_for_whoever_made_it() -> None:
    assert initial_audiences("42") == ("user:42",)


@pytest.mark.parametrize(
    ("audiences", "allowed"),
    [
        (["user:1"], True),
        (["project:p", "user:1"], True),
        (["chat:c"], True),
        (["hr"], True),
        (["user:2"], False),
        (["project:other"], False),
        (["agent:a"], False),
        (["can:read"], False),
        ([], False),
    ],
)
def test_a_member_publishes_to_what_is_theirs(audiences: list[str], allowed: bool) -> None:
    member = Person("1", frozenset({"member"}), frozenset({"p"}), frozenset({"c"}))
    admin = Person("2", frozenset({"admin"}))
    check_publish(admin, PermissionMap(), audiences)
    if allowed:
        check_publish(member, PermissionMap(), audiences)
    else:
        with pytest.raises(PolicyError):
            check_publish(member, PermissionMap(), audiences)
