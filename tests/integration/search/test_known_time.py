"""Searching what was known at an instant: corrections and removals do not reach back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kb_resources.errors import InputError
from kb_resources.store import passages

from .conftest import START, World


def now(world: World) -> datetime:
    with world.pipeline() as conn:
        row = conn.execute("select clock_timestamp()").fetchone()
    found: datetime = row[0]
    return found


@pytest.mark.requirement("P-21")
def test_a_search_gives_what_was_known_then(world: World) -> None:
    before_all = now(world)
    world.publish("rule", ["leave is thirty days"], valid_from=START)
    first = now(world)
    world.publish("rule", ["leave is forty days"], valid_from=START + timedelta(days=10))
    second = now(world)
    row = world.row("rule")
    with world.pipeline() as conn:
        passages.remove(conn, row.document_key, START + timedelta(days=20))
    inside, late = START + timedelta(days=15), START + timedelta(days=25)

    def texts(**values: object) -> list[str]:
        return [hit.text for hit in world.search("leave days", **values).hits]

    for mode in ("hybrid", "text", "vector"):
        assert texts(mode=mode, as_of=inside) == ["leave is forty days"]
        assert texts(mode=mode, as_of=inside, known_at=first) == ["leave is thirty days"]
        assert texts(mode=mode, as_of=late, known_at=second) == ["leave is forty days"]
        assert texts(mode=mode, as_of=late) == []
        assert texts(mode=mode, as_of=late, known_at=before_all) == []
    both = texts(as_of=inside, known_at=second, include_historical=True)
    assert sorted(both) == ["leave is forty days", "leave is thirty days"]
    then = world.search("leave", as_of=inside, known_at=first).hits[0]
    assert (then.valid_from, then.valid_until) == (START, None)
    with pytest.raises(InputError, match="no zone"):
        world.search("leave", known_at=datetime(2026, 1, 1))  # noqa: DTZ001


def test_without_a_valid_time_it_is_the_known_time(world: World) -> None:
    world.publish("rule", ["leave is thirty days"])
    known = now(world)
    with world.pipeline() as conn:
        passages.remove(conn, world.row("rule").document_key, datetime.now(UTC))
    assert world.found("leave") == []
    assert world.found("leave", known_at=known) == ["rule"]


def test_filters_and_audiences_hold_for_what_was_known_too(world: World) -> None:
    world.publish("open", ["leave is thirty days"])
    world.publish("red", ["leave for the board"], audiences=["board"])
    known = now(world)
    assert world.found("leave", known_at=known) == ["open"]
    assert sorted(world.found("leave", known_at=known, audiences=["board"])) == ["open", "red"]
