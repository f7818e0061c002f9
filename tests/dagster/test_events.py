"""The sensor over the outbox: every change reaches Dagster, lost ticks repeat theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from kb_resources.model import Stage
from kb_resources.stages import events, removal

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

TEXT = "# House {n}\n\nThe office in house {n} opens at eight and closes at five on working days.\n"


def tick(
    plant: Plant, sensor: dg.SensorDefinition, cursor: str | None
) -> tuple[list[tuple[str, str, str]], str, list[str]]:
    """What one tick tells (partition, kind, event id), its cursor, the run keys it asks for."""
    with dg.build_sensor_context(
        instance=plant.instance, cursor=cursor, resources={"line": plant.line}
    ) as context:
        result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    told = []
    for observed in result.asset_events:
        values = {name: str(value.value) for name, value in observed.metadata.items()}
        told.append((str(observed.partition), values["kind"], values["event_id"]))
    return told, str(result.cursor), [str(run.run_key) for run in result.run_requests or ()]


@pytest.mark.requirement("W-15", "O-09")
def test_changes_reach_dagster_and_come_again_after_a_lost_tick(plant: Plant) -> None:
    from kb_assets.events import change_sensor

    sensor = change_sensor(
        lambda found: [dg.RunRequest(run_key=event.event_id) for event in found],
        name="mirror",
        target=plant.defs.resolve_job_def("kb_batch"),
    )
    told, cursor, _ = tick(plant, sensor, None)
    assert told == []  # subscribed with its first tick
    [key] = plant.register({"house.md": TEXT.format(n=1)})
    assert plant.batch([key]).success
    first, after, runs = tick(plant, sensor, cursor)
    assert [(partition, kind) for partition, kind, _ in first] == [(str(key), "upsert")]
    assert runs == [first[0][2]]
    lost, _, again = tick(plant, sensor, cursor)  # the daemon died before it kept `after`
    assert (lost, again) == (first, runs)
    removal.remove(plant.line.capabilities, key, actor="test", reason="Outdated.")
    second, _, _ = tick(plant, sensor, after)
    assert [(partition, kind) for partition, kind, _ in second] == [(str(key), "delete")]


def test_the_sensor_rests_until_somebody_switches_it_on(plant: Plant) -> None:
    sensors = {sensor.name: sensor for sensor in plant.defs.sensors or ()}
    assert sensors["knowledge_changes"].default_status is dg.DefaultSensorStatus.STOPPED
    assert events.consumers(plant.line.capabilities.database) == []
    assert Stage.INDEX.value in str(sensors["knowledge_changes"].description)
