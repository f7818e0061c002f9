"""When a page is asked for: only when due, as slowly as its host wants, by one look at a time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from kb_resources.stages.watch_check import check_now
from tests.integration.watch.conftest import THIRTY

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import Asked
    from tests.integration.watch.conftest import Watching


def test_nothing_is_asked_before_it_is_due(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave", every_s=6 * 3600)
    watching.round()
    asked = len(watching.site.seen)
    watching.wall.pass_by(hours=5)
    assert str(watching.check()) == "Nothing was due"
    assert len(watching.site.seen) == asked
    again = check_now(watching.bench.line, [row.watch_id], watching.options())
    assert again.counts == {"unchanged": 1}


@pytest.mark.requirement("P-71")
def test_failures_wait_longer_each_time_and_keep_what_was_there(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave", every_s=3600)
    watching.round()
    watching.gone("/leave", "500 Broken")
    watching.wall.pass_by(hours=2)
    waits = []
    for _ in range(14):
        assert watching.check().counts == {"failing": 1}
        found = watching.rows(row)[0]
        waits.append((found["next_check_at"] - watching.wall()).total_seconds())  # type: ignore[operator]
        watching.wall.pass_by(seconds=waits[-1])
    assert waits[:4] == [45.0, 90.0, 180.0, 360.0]  # half to whole of 60 s doubled; chance is .5
    assert waits == sorted(waits)
    assert waits[-1] == 0.75 * 86_400
    assert watching.bench.texts("annual leave")
    watching.page("/leave", THIRTY)
    assert watching.check().counts == {"unchanged": 1}
    assert watching.rows(row)[0]["failures"] == 0


@pytest.mark.requirement("P-71")
def test_a_busy_host_is_left_alone_for_as_long_as_it_asks(watching: Watching) -> None:
    for name in ("a", "b", "c"):
        watching.gone(f"/{name}", "429 Slow down")
        watching.watch(f"/{name}")

    def busy(asked: Asked) -> None:
        asked.reply("429 Slow down", Retry_After="600")

    for name in ("a", "b", "c"):
        watching.site.routes[f"/{name}"] = busy
    report = watching.check()
    assert report.counts == {"failing": 1}
    assert report.left == 2
    asked = len(watching.site.seen)
    watching.wall.pass_by(seconds=599)
    assert watching.check().counts == {}
    assert len(watching.site.seen) == asked
    watching.wall.pass_by(seconds=2)
    for name in ("a", "b", "c"):
        watching.page(f"/{name}", f"{THIRTY} {name}")
    assert watching.check().counts == {"changed": 3}


@pytest.mark.requirement("P-71")
def test_a_host_is_asked_no_faster_than_allowed(watching: Watching) -> None:
    watching.site.routes["/robots.txt"] = lambda asked: asked.reply(
        body=b"User-agent: *\nCrawl-delay: 3\nDisallow: /private\n"
    )
    for name in ("a", "b", "c", "private/d"):
        watching.page(f"/{name}", f"{THIRTY} {name}")
        watching.watch(f"/{name}")
    report = watching.check(delay_s=1.0, seconds=100.0)
    assert report.counts == {"changed": 3, "refused": 1}
    assert sum(watching.slept) == pytest.approx(1 + 3 + 3)  # after robots.txt, then its own delay
    assert watching.asked("/private/d") == 0


def test_what_there_is_no_time_for_is_left_to_the_next_look(watching: Watching) -> None:
    for number in range(10):
        watching.page(f"/{number}", f"{THIRTY} {number}")
        watching.watch(f"/{number}")
    report = watching.check(delay_s=2.0, seconds=9.0)
    assert report.counts["changed"] == 4
    watching.wall.pass_by(seconds=3)
    again = watching.check(delay_s=0.0)
    assert again.counts["changed"] == 6
    assert all(watching.asked(f"/{number}") == 1 for number in range(10))


@pytest.mark.parametrize(
    ("robots", "counts"),
    [
        ("404 Not Found", {"changed": 1}),
        ("403 Forbidden", {"changed": 1}),
        ("500 Broken", {"refused": 1}),
    ],
)
def test_a_robots_file_that_cannot_be_read_means_what_the_standard_says(
    watching: Watching, robots: str, counts: dict[str, int]
) -> None:
    watching.page("/leave", THIRTY)
    watching.gone("/robots.txt", robots)
    watching.watch("/leave")
    assert watching.check().counts == counts


def test_two_looks_at_once_ask_every_page_once(watching: Watching) -> None:
    from concurrent.futures import ThreadPoolExecutor

    for number in range(30):
        watching.page(f"/{number}", f"{THIRTY} {number}")
        watching.watch(f"/{number}")
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda _: watching.check(), range(3)))
    assert sum(report.counts["changed"] for report in reports) == 30
    assert all(watching.asked(f"/{number}") == 1 for number in range(30))


def test_a_look_that_died_gives_its_pages_back_by_time(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave")

    def dying(*_: object, **__: object) -> object:
        raise RuntimeError("killed")

    from kb_resources.stages.watch_check import LEASE_S, check_due

    with pytest.raises(RuntimeError):
        check_due(watching.bench.line, dying, watching.options())  # type: ignore[arg-type]
    assert watching.check().counts == {}
    watching.wall.now += timedelta(seconds=LEASE_S + watching.options().seconds + 1)
    assert watching.check().counts == {"changed": 1}
