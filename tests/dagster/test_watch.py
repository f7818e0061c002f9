"""The sensor over watched addresses: a run for what changed, none for what did not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from kb_resources.model import DocumentKey
from kb_resources.settings import load_settings
from kb_resources.stages import watch
from kb_resources.stages.watch import WatchRequest
from kb_resources.stages.watch_check import CheckOptions
from tests.integration.fetch.conftest import Asked, OpenSite, Site, open_site, site  # noqa: F401

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

PAGE = "<html><head><script nonce='{0}'></script></head><body><h1>Rule {1}</h1><p>{2}</p></body>"
TEXT = "Every employee reads rule {0} on the first working day of the year and signs for it."


@pytest.fixture
def opened(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:  # noqa: F811
    """The site, opened for the installation that is made after it."""
    monkeypatch.setenv("KB_FETCH_ALLOW_HOSTS", site.authority)
    return site


@pytest.fixture
def watched(opened: Site, request: pytest.FixtureRequest) -> Plant:
    plant: Plant = request.getfixturevalue("plant")
    return plant


def serve(site: Site, number: int, text: str, nonce: str = "a") -> None:  # noqa: F811
    body = PAGE.format(nonce, number, text).encode()
    site.routes[f"/{number}"] = lambda asked: asked.reply(body=body, Content_Type="text/html")


def hurry(plant: Plant) -> None:
    """Let the time until the next look be over."""
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        conn.execute("update kb.watched_page set next_check_at = now() - interval '1 hour'")
        conn.execute("update kb.watched_host set busy_until = now() - interval '1 hour'")


def tick(plant: Plant, sensor: dg.SensorDefinition) -> tuple[list[DocumentKey], str]:
    """One tick: the documents it asked runs for, and what it said when for none."""
    with dg.build_sensor_context(
        instance=plant.instance, resources={"line": plant.line}
    ) as context:
        result = sensor(context)
    if isinstance(result, dg.SkipReason):
        return [], str(result.skip_message)
    assert isinstance(result, dg.SensorResult)
    for adding in result.dynamic_partitions_requests or ():
        plant.instance.add_dynamic_partitions(
            adding.partitions_def_name, list(adding.partition_keys)
        )
    keys = []
    for request in result.run_requests or ():
        keys += plant.line.batch(request.run_config["batch_id"])
    return keys, ""


@pytest.mark.requirement("P-71")
def test_changed_pages_make_one_batch_and_unchanged_ones_no_run(
    watched: Plant,
    opened: Site,
) -> None:
    from kb_assets.watch import watch_sensor

    sensor = watch_sensor(lambda: CheckOptions(delay_s=0.0, seconds=20.0))
    for number in range(12):
        serve(opened, number, TEXT.format(number))
        watch.add(
            watched.line.capabilities.database,
            WatchRequest("acme", opened.url(f"/{number}")),
            policy=watched.line.capabilities.fetcher.policy,  # type: ignore[union-attr]
            languages=("en",),
            now=datetime.now(UTC),
        )
    keys, _ = tick(watched, sensor)
    assert len(keys) == 12
    assert set(watched.instance.get_dynamic_partitions("kb_documents")) == {str(k) for k in keys}
    assert watched.batch(keys).success
    assert set(watched.states(keys).values()) == {"indexed"}

    assert tick(watched, sensor) == ([], "Nothing was due.")
    for number in range(12):
        serve(opened, number, TEXT.format(number), nonce="b")
    hurry(watched)
    assert tick(watched, sensor) == ([], "12 unchanged.")

    serve(opened, 3, TEXT.format("three"), nonce="b")
    hurry(watched)
    changed, _ = tick(watched, sensor)
    assert len(changed) == 1
    assert watched.batch(changed).success
    with watched.line.capabilities.database.transaction("pipeline") as conn:
        counted = conn.execute("select max(version), count(*) from kb.version").fetchone()
    assert counted == (2, 13)


def test_a_page_whose_tick_died_is_taken_up_all_the_same(watched: Plant, opened: Site) -> None:
    """The page is pending in the ledger before any run is asked for."""
    from kb_assets.stranded import sort_out
    from kb_resources.stages.orchestration import waiting_documents
    from kb_resources.stages.watch_check import check_due

    serve(opened, 1, TEXT.format(1))
    fetcher = watched.line.capabilities.fetcher
    assert fetcher is not None
    watch.add(
        watched.line.capabilities.database,
        WatchRequest("acme", opened.url("/1")),
        policy=fetcher.policy,
        languages=("en",),
        now=datetime.now(UTC),
    )
    (key,) = check_due(watched.line, fetcher.fetch, CheckOptions(delay_s=0.0)).keys
    waiting = waiting_documents(watched.line, older_than_s=0, max_tries=3, limit=10)
    lost, left_behind = sort_out(watched.instance, waiting)
    assert lost == {}
    assert [item.key for item in left_behind] == [key]


def test_the_location_has_one_sensor_for_all_watched_addresses(watched: Plant) -> None:
    names = [sensor.name for sensor in watched.defs.sensors or ()]
    assert names.count("watched_urls") == 1


def test_a_declared_address_is_watched_as_declared(watched: Plant, opened: Site) -> None:
    from kb_assets.source import KbSource

    def declared(**changes: object) -> dg.SensorDefinition:
        given: dict[str, object] = {
            "name": "rules",
            "scope": "acme",
            "url": opened.url("/map.xml"),
            "audiences": ["staff"],
            "expand": "sitemap",
            "limit": 10,
            **changes,
        }
        return KbSource.model_validate(given).sensor()

    assert "stands as declared" in tick(watched, declared())[1]
    assert "stands as declared" in tick(watched, declared(every_s=7200, on_missing="remove"))[1]
    (row,) = watch.list_(watched.line.capabilities.database, "acme")
    assert (row.url, row.expand, row.audiences) == (opened.url("/map.xml"), "sitemap", ["staff"])
    assert (row.every_s, row.on_missing, row.page_limit) == (7200, "remove", 10)
    assert row.created_by == "source:rules"


def test_the_default_bounds_come_from_the_settings(
    watched: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb_assets.watch import SECONDS_PER_TICK, default_options

    monkeypatch.setenv("KB_FETCH_DELAY_S", "2.5")
    assert load_settings().fetch_delay_s == 2.5
    options = default_options()
    assert (options.delay_s, options.seconds) == (2.5, SECONDS_PER_TICK)


def test_no_fetch_of_a_tick_goes_on_past_what_the_code_server_waits(watched: Plant) -> None:
    from kb_assets.watch import LONGEST_FETCH_S, SECONDS_PER_TICK, hurried

    fetcher = watched.line.capabilities.fetcher
    assert fetcher is not None
    assert fetcher.policy.timeout_s == 180.0
    assert SECONDS_PER_TICK + hurried(fetcher).policy.timeout_s <= 55.0
    assert hurried(fetcher).policy.timeout_s == LONGEST_FETCH_S
    assert hurried(fetcher).policy.allow_hosts == fetcher.policy.allow_hosts
