"""Valid and known time: any sequence of changes gives the history that a plain model gives."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_resources.store import lifecycle
from tests.integration.search.conftest import START

if TYPE_CHECKING:
    from tests.integration.search.conftest import World

DAYS = 12
_numbers = itertools.count(1)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 3), st.integers(0, DAYS - 1)),
        st.tuples(st.just("end"), st.just(0), st.integers(0, DAYS - 1)),
        st.tuples(st.just("remove"), st.just(0), st.integers(0, DAYS - 1)),
        st.tuples(st.just("restore"), st.just(0), st.integers(0, DAYS - 1)),
    ),
    min_size=1,
    max_size=7,
)


def _day(number: int) -> datetime:
    return START + timedelta(days=number)


@dataclass
class Model:
    """Which version holds on each day; a change speaks of its day and all later ones."""

    holds: list[int | None] = field(default_factory=lambda: [None] * (DAYS + 1))
    removed: bool = False
    latest: int | None = None

    def from_day(self, day: int, version: int | None) -> None:
        self.holds[day:] = [version] * (len(self.holds) - day)


def _known(world: World, name: str, at: datetime) -> list[int | None]:
    """Version by day as it was known at an instant."""
    with world.pipeline() as conn:
        found = lifecycle.intervals(conn, world.scope, name, known_at=at)
    days: list[int | None] = []
    for number in range(DAYS + 1):
        day = _day(number)
        held = [
            i.version
            for i in found
            if (i.valid_from or day) <= day and (i.valid_until is None or day < i.valid_until)
        ]
        assert len(held) <= 1, "two versions at one instant"
        days.append(held[0] if held else None)
    return days


def _now(world: World) -> datetime:
    found: datetime = world.ask("select clock_timestamp()")[0]
    return found


@pytest.mark.requirement("P-33", "P-34", "P-35")
@settings(max_examples=12)
@given(steps=_STEPS)
def test_history_is_what_a_plain_model_says_at_every_known_time(
    world: World, steps: list[tuple[str, int, int]]
) -> None:
    name = f"doc{next(_numbers)}"
    staged = {}
    for number in (1, 2, 3):
        staged[number] = world.stage(name, [f"walrus version {number}"])
        world.embed(*staged[number])
    model, seen = Model(), []
    for kind, version, day in steps:
        row = world.row(name)
        if kind == "put" and not model.removed:
            was_current = model.holds[-1] == version
            world.put(*staged[version], valid_from=_day(day))
            if not was_current:
                model.from_day(day, version)
            model.latest = version
        elif kind == "end" and not model.removed:
            with world.pipeline() as conn:
                conn.execute("select kb.close_validity(%s, %s)", [row.document_key, _day(day)])
            model.from_day(day, None)
        elif kind == "remove" and not model.removed:
            with world.pipeline() as conn:
                lifecycle.remove(conn, row, _day(day), "asked")
            model.from_day(day, None)
            model.removed = True
        elif kind == "restore" and model.removed:
            with world.pipeline() as conn:
                state = lifecycle.restore(conn, row, _day(day))
            model.removed = False
            if state == "indexed":
                model.from_day(day, row.latest_version)
        seen.append((_now(world), list(model.holds)))
    for at, expected in seen:
        assert _known(world, name, at) == expected
    drift = world.ask(
        "select count(*) from kb.passage p join kb.version v using (version_key) "
        "join kb.document d using (document_key) join kb.lex l using (passage_key) "
        "cross join lateral kb.version_intervals(v.version_key) i "
        "where d.document_id = %(name)s and (l.valid_from, l.valid_until, l.earlier) "
        "is distinct from (i.valid_from, i.valid_until, i.earlier)",
        name=name,
    )
    assert drift == (0,)


@pytest.mark.requirement("P-34")
def test_an_interval_holds_from_its_first_instant_to_just_before_its_last(world: World) -> None:
    world.publish("doc", ["walrus old"], valid_from=_day(0))
    world.publish("doc", ["walrus new"], valid_from=_day(5))
    tick = timedelta(microseconds=1)

    def at(instant: datetime) -> list[str]:
        return [hit.text for hit in world.search("walrus", as_of=instant).hits]

    assert at(_day(0) - tick) == []
    assert at(_day(0)) == at(_day(5) - tick) == ["walrus old"]
    assert at(_day(5)) == ["walrus new"]


@pytest.mark.requirement("P-35")
def test_a_source_that_reverts_reinstates_its_version(world: World) -> None:
    for day, text in enumerate(["walrus a", "walrus b", "walrus a"]):
        world.publish("doc", [text], valid_from=_day(day))
    embedded = world.embedder.texts
    with world.pipeline() as conn:
        held = lifecycle.intervals(conn, world.scope, "doc", known_at=_now(world))
    assert [(i.version, i.valid_until is None) for i in held] == [(1, False), (2, False), (1, True)]
    assert embedded == 2, "the reinstated version is not embedded again"
