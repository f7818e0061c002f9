"""Five kinds of audiences times five principals: every cell, in search itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kb_resources.model.audiences import (
    AudienceKind,
    PermissionMap,
    Person,
    audiences_of,
    resolve,
)

if TYPE_CHECKING:
    from tests.integration.search.conftest import World

MEMBER = frozenset({"member"})
PEOPLE = {
    "owner of the document": Person("ana", MEMBER, frozenset({"p1"}), frozenset({"c1"})),
    "reader of the chat": Person("bor", MEMBER, frozenset(), frozenset({"c1"})),
    "another member": Person("cen", MEMBER, frozenset({"p2"}), frozenset({"c2"})),
    "manager": Person("dan", frozenset({"admin"})),
    "somebody without permissions": Person("eva"),
}
KINDS = {
    AudienceKind.ORGANIZATION: audiences_of(AudienceKind.ORGANIZATION),
    AudienceKind.AGENT: audiences_of(AudienceKind.AGENT, "a1"),
    AudienceKind.PROJECT: audiences_of(AudienceKind.PROJECT, "p1", owner="ana"),
    AudienceKind.CHAT: audiences_of(AudienceKind.CHAT, "c1", owner="ana"),
    AudienceKind.USER: audiences_of(AudienceKind.USER, "ana"),
}
READS = {
    AudienceKind.ORGANIZATION: {
        "owner of the document", "reader of the chat", "another member", "manager",
    },
    AudienceKind.AGENT: {
        "owner of the document", "reader of the chat", "another member", "manager",
    },
    AudienceKind.PROJECT: {"owner of the document", "manager"},
    AudienceKind.CHAT: {"owner of the document", "reader of the chat", "manager"},
    AudienceKind.USER: {"owner of the document", "manager"},
}  # fmt: skip


@pytest.mark.requirement("B-02", "B-03", "O-21")
def test_every_cell_of_the_matrix(world: World) -> None:
    for kind, audiences in KINDS.items():
        world.publish(f"doc-{kind.value}", [f"walrus {kind.value}"], audiences=audiences)
    for name, person in PEOPLE.items():
        principal = resolve(person, PermissionMap(), frozenset({world.scope}))
        found = set(world.found("walrus", principal=principal, mode="text", k=20))
        expected = {f"doc-{kind.value}" for kind, readers in READS.items() if name in readers}
        assert found == expected, name
        by_vector = set(world.found("walrus", principal=principal, mode="vector", k=20))
        assert by_vector == expected, name


@pytest.mark.requirement("B-02")
def test_a_document_may_be_for_several_kinds_at_once(world: World) -> None:
    both = KINDS[AudienceKind.CHAT] + audiences_of(AudienceKind.USER, "cen")
    world.publish("doc", ["walrus"], audiences=sorted(set(both)))
    principal = resolve(PEOPLE["another member"], PermissionMap(), frozenset({world.scope}))
    assert world.found("walrus", principal=principal) == ["doc"]
