"""Scopes of every knowledge store: named by each call or pinned, made, closed, and never mixed.

Numbers in brackets are those of the list of behaviours that the reference systems' own tests prove
(requirements, appendix B).
"""

from __future__ import annotations

import inspect

import pytest

from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError, ScopeRequired
from kb_resources.store.contract import KnowledgeStore
from kb_resources.store.records import VectorSpace
from kb_resources.store.scopes import ScopeSettings

from .conftest import LEAVE, Kept, edition, vector_of

pytestmark = pytest.mark.requirement("O-09")


def _arguments(name: str) -> dict[str, object]:
    """Something for every parameter without a default."""
    known: dict[str, object] = {
        "edition": edition("leave", *LEAVE),
        "document_id": "leave",
        "passage_id": "leave.x.y.0",
        "audiences": ["board"],
        "confirm": "s1",
        "vectors": {},
        "holder": "worker",
        "consumer": "mirror",
        "event_ids": [],
    }
    parameters = inspect.signature(getattr(KnowledgeStore, name)).parameters.values()
    return {
        each.name: known[each.name]
        for each in parameters
        if each.default is inspect.Parameter.empty and each.name != "self"
    }


SCOPED = [
    name
    for name, member in vars(KnowledgeStore).items()
    if not name.startswith("_") and inspect.isfunction(member)
]


@pytest.mark.requirement("O-16", "W-29")
@pytest.mark.parametrize("kind", ["memory", "postgres"])
@pytest.mark.parametrize("method", SCOPED)
def test_every_call_without_a_scope_is_refused(make_store, kind, method) -> None:
    store, _, database = make_store(kind)
    if database is not None:
        database.close()  # no statement may be needed to refuse
        store._database = None
    with pytest.raises(ScopeRequired):
        getattr(store, method)(**_arguments(method))


@pytest.mark.requirement("O-16")
@pytest.mark.parametrize("kind", ["memory", "postgres"])
@pytest.mark.parametrize("method", SCOPED)
def test_a_pinned_store_answers_for_no_other_scope(make_store, kind, method) -> None:
    store, _, _ = make_store(kind)
    with pytest.raises(PolicyError) as caught:
        getattr(store.pinned_to("s1"), method)(**_arguments(method), scope="s2")
    assert caught.value.code == "scope_pinned"


@pytest.mark.requirement("O-16")
@pytest.mark.parametrize("bad", ["Acme", "a b", "*", "a,b", "x" * 64, "a'; drop table"])
def test_a_malformed_scope_is_refused(kept: Kept, bad: str) -> None:
    with pytest.raises(InputError):
        kept.unpinned.get("leave", scope=bad)


def test_an_unknown_scope_is_not_made_by_the_way(kept: Kept) -> None:
    with pytest.raises(NotFound):
        kept.unpinned.put(edition("leave", *LEAVE), scope="nobody-made-this")
    with pytest.raises(NotFound):
        kept.unpinned.search(text="leave", scope="nobody-made-this")


@pytest.fixture
def other(kept: Kept) -> str:
    """A second scope that holds a document of the same name."""
    name = f"{kept.name}-other"
    kept.unpinned.scopes.create(name)
    kept.put("leave", *LEAVE)
    kept.unpinned.put(edition("leave", "Leave is 20 days elsewhere."), scope=name)
    return name


@pytest.mark.requirement("W-29")
def test_what_is_put_in_one_scope_is_invisible_in_another(kept: Kept, other: str) -> None:
    """[47, 48, 53]"""
    kept.put("only-here", "A secret of this scope.")
    assert kept.unpinned.get("only-here", scope=other) is None
    assert [each.document_id for each in kept.unpinned.documents(scope=other).items] == ["leave"]
    assert kept.unpinned.count(scope=other) == (1, 1)
    assert kept.unpinned.passages("only-here", scope=other) == ()
    hits = kept.unpinned.search(
        text="secret scope leave days", vector=vector_of("secret"), k=50, scope=other
    )
    assert [hit.passage.text for hit in hits] == ["Leave is 20 days elsewhere."]
    assert kept.store.get("leave", scope=kept.scope).passages == 2


@pytest.mark.requirement("W-29")
def test_removing_in_one_scope_cannot_touch_another(kept: Kept, other: str) -> None:
    """[49]"""
    assert kept.unpinned.remove("leave", scope=other)
    assert kept.store.get("leave", scope=kept.scope) is not None
    kept.unpinned.restore("leave", scope=other)
    kept.store.remove_all(confirm=kept.name, scope=kept.scope)
    assert kept.unpinned.count(scope=other) == (1, 1)


@pytest.mark.requirement("W-29")
def test_no_result_names_an_internal_column(kept: Kept) -> None:
    """[50]"""
    kept.put("leave", *LEAVE)
    [hit] = kept.store.search(text="carry", scope=kept.scope)
    shown = repr((hit, kept.store.get("leave", scope=kept.scope)))
    assert "scope_id" not in shown
    assert "_key" not in shown


@pytest.mark.requirement("W-13", "W-26")
@pytest.mark.parametrize("name", ["", " ", "a b", "english; drop"])
def test_blank_and_injected_names_are_refused(kept: Kept, name: str) -> None:
    """[30, 61]"""
    with pytest.raises(InputError):
        kept.unpinned.scopes.create(name)
    if not name.strip():
        with pytest.raises(InputError):
            VectorSpace(name, 8)


@pytest.mark.requirement("W-26")
def test_a_name_is_taken_once_and_unknown_ones_are_told(kept: Kept) -> None:
    with pytest.raises(ConflictError) as caught:
        kept.unpinned.scopes.create(kept.name)
    assert caught.value.code == "scope_exists"
    with pytest.raises(NotFound, match="no scope"):
        kept.unpinned.scopes.get("never-made")
    assert kept.name in [each.name for each in kept.unpinned.scopes.all()]


def test_languages_that_no_text_is_told_to_be_in_are_refused(kept: Kept) -> None:
    scopes = kept.unpinned.scopes
    for call in (scopes.create, scopes.configure):
        name = kept.name if call == scopes.configure else f"{kept.name}-all"
        with pytest.raises(InputError) as caught:
            call(name, settings=ScopeSettings(languages=("de", "all")))
        assert caught.value.code == "unknown_language"
    changed = scopes.configure(kept.name, ScopeSettings(languages=("de", "fr")))
    assert changed.settings.languages == ("de", "fr")


def test_a_closed_scope_takes_nothing_and_stays_readable(kept: Kept) -> None:
    kept.put("leave", *LEAVE)
    assert kept.unpinned.scopes.close(kept.name).closed_at is not None
    with pytest.raises(PolicyError) as caught:
        kept.put("more", "Text.")
    assert caught.value.code == "scope_closed"
    assert kept.found("carry") == ["leave"]
    kept.unpinned.scopes.reopen(kept.name)
    assert kept.put("more", "Text.").state == "new"
