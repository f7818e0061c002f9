"""Events of what is found and what is not any more: at least once, whatever the consumer does."""

from __future__ import annotations

import pytest

from kb_resources.errors import InputError, NotFound
from kb_resources.store.records import Event

from .conftest import DAY, START, Kept, edition


def waiting(kept: Kept, consumer: str = "mirror") -> list[tuple[str, str, int | None]]:
    events = kept.store.events(consumer, scope=kept.scope)
    return [(event.document_id, event.kind, event.version) for event in events]


@pytest.mark.requirement("W-15")
def test_every_change_of_what_is_found_is_told_once_each_in_order(kept: Kept) -> None:
    """[62]"""
    kept.put("before", "Nobody listened yet.")
    kept.store.subscribe("mirror", scope=kept.scope)
    kept.put("leave", "Leave is 30 days.")
    kept.put("leave", "Leave is 30 days.")
    kept.put("leave", "Leave is 28 days.", valid_from=START + DAY)
    kept.put("leave", "Leave is 28 days.", title="Leave, revised")
    kept.store.set_audiences("leave", ["board"], scope=kept.scope)
    kept.store.remove("leave", scope=kept.scope)
    kept.store.restore("leave", scope=kept.scope)
    kept.store.remove("before", scope=kept.scope)
    assert waiting(kept) == [
        ("leave", "upsert", 1),
        ("leave", "upsert", 2),
        ("leave", "upsert", 2),
        ("leave", "upsert", 2),
        ("leave", "delete", None),
        ("leave", "upsert", 2),
        ("before", "delete", None),
    ]


def test_vectors_that_arrive_later_change_nothing_a_consumer_has_to_know(kept: Kept) -> None:
    kept.store.subscribe("mirror", scope=kept.scope)
    done = edition("leave", "Leave is 30 days.")
    kept.put("leave", "Leave is 30 days.", vectors=False)
    kept.store.add_vectors("leave", done.vectors, scope=kept.scope)
    assert waiting(kept) == [("leave", "upsert", 1)]


def test_an_event_comes_again_with_its_id_until_it_is_acknowledged(kept: Kept) -> None:
    kept.store.subscribe("mirror", scope=kept.scope)
    kept.put("a", "First.")
    kept.put("b", "Second.")
    first = kept.store.events("mirror", scope=kept.scope)
    assert kept.store.events("mirror", scope=kept.scope) == first
    assert len({event.event_id for event in first}) == 2
    assert {event.scope for event in first} == {kept.name}
    assert kept.store.acknowledge("mirror", [first[0].event_id], scope=kept.scope) == 1
    assert kept.store.events("mirror", scope=kept.scope) == first[1:]
    again = [first[0].event_id, "no such id"]
    assert kept.store.acknowledge("mirror", again, scope=kept.scope) == 0


def test_consumers_do_not_take_events_from_each_other(kept: Kept) -> None:
    """[52] And one that leaves is told nothing more."""
    for name in ("one", "two"):
        kept.store.subscribe(name, scope=kept.scope)
    kept.put("a", "First.")
    kept.store.subscribe("two", scope=kept.scope)  # again changes nothing
    ids = [event.event_id for event in kept.store.events("one", scope=kept.scope)]
    kept.store.acknowledge("one", ids, scope=kept.scope)
    assert waiting(kept, "one") == []
    assert waiting(kept, "two") == [("a", "upsert", 1)]
    kept.store.unsubscribe("two", scope=kept.scope)
    kept.put("b", "Second.")
    with pytest.raises(NotFound):
        kept.store.events("two", scope=kept.scope)
    assert waiting(kept, "one") == [("b", "upsert", 1)]


@pytest.mark.requirement("W-29")
def test_events_stay_in_their_scope(kept: Kept) -> None:
    """[47]"""
    other = f"{kept.name}-other"
    kept.unpinned.scopes.create(other)
    kept.store.subscribe("mirror", scope=kept.scope)
    kept.unpinned.subscribe("mirror", scope=other)
    kept.unpinned.put(edition("leave", "Elsewhere."), scope=other)
    assert waiting(kept) == []
    theirs = kept.unpinned.events("mirror", scope=other)
    ids = [event.event_id for event in theirs]
    assert kept.store.acknowledge("mirror", ids, scope=kept.scope) == 0
    assert kept.unpinned.events("mirror", scope=other) == theirs


@pytest.mark.parametrize("name", ["", "Upper", "a b", "x" * 64])
def test_malformed_consumers_are_refused(kept: Kept, name: str) -> None:
    with pytest.raises(InputError):
        kept.store.subscribe(name, scope=kept.scope)


def test_a_limit_takes_the_oldest(kept: Kept) -> None:
    kept.store.subscribe("mirror", scope=kept.scope)
    for name in "abc":
        kept.put(name, f"Text {name}.")
    events: tuple[Event, ...] = kept.store.events("mirror", limit=2, scope=kept.scope)
    assert [event.document_id for event in events] == ["a", "b"]
