"""What search finds and what not any more, told to Dagster: a sensor over the outbox.

Belongs here: handing each change to Dagster at least once, and acknowledging it only when Dagster
has kept what the tick before returned. What does not: the outbox (`stages.events`), and what a
project does with the changes, for which `change_sensor` takes a function.
Sensors and cursors: https://docs.dagster.io/guides/automate/sensors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from kb_checks.reporting import asset_key
from kb_resources.model import Stage
from kb_resources.stages import events
from kb_resources.stages.line import Line
from kb_resources.store.records import Event

if TYPE_CHECKING:
    from dagster import RunRequest

CONSUMER = "dagster"
CHANGES_PER_TICK = 100

Requests = Callable[[Sequence[Event]], Sequence["RunRequest"]]
"""Runs for changes. Give each the event's id as its run key: a change that comes twice, because a
tick was lost after it, then makes one run."""


def change_sensor(
    requests: Requests | None = None,
    *,
    name: str = "knowledge_changes",
    consumer: str = CONSUMER,
    scope: str | None = None,
    target: Any = None,
    default_status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.STOPPED,
) -> dg.SensorDefinition:
    """A sensor that gets every change of what search finds, at least once, in order.

    Each change becomes an observation of `kb/index` in the document's partition. The changes of a
    tick are acknowledged in the next one, when Dagster has stored the cursor that names them: if
    the daemon dies in between, they come again with the same ids.

    Args:
        requests: runs to launch for changes, or None for observations alone.
        name: of the sensor.
        consumer: whose events; two sensors need two names.
        scope: only of this scope.
        target: job or assets of the requested runs, as Dagster's `SensorDefinition` takes it.
        default_status: stopped unless somebody wants it: a consumer that exists costs a row for
            each change.
    """

    @dg.sensor(
        name=name,
        target=target,
        minimum_interval_seconds=15,
        default_status=default_status,
        description=(
            "Tells what search finds and what not any more: `upsert` and `delete` of documents, "
            "each at least once with a stable id. Switch it on to see changes as observations of "
            "kb/index, or hang runs of your own on it (`kb_assets.events.change_sensor`)."
        ),
    )
    def sensor(
        context: dg.SensorEvaluationContext, line: dg.ResourceParam[Line]
    ) -> dg.SensorResult | dg.SkipReason:
        database = line.capabilities.database
        told = json.loads(context.cursor or "[]")
        events.acknowledge(database, consumer, told, scope=scope)
        found = events.waiting(database, consumer, scope=scope, limit=CHANGES_PER_TICK)
        cursor = json.dumps([event.event_id for event in found])
        if not found:
            return dg.SensorResult(skip_reason="Nothing changed.", cursor=cursor)
        return dg.SensorResult(
            asset_events=[_observed(event) for event in found],
            run_requests=list(requests(found)) if requests else None,
            cursor=cursor,
        )

    return sensor


def _observed(event: Event) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset_key=asset_key(Stage.INDEX),
        partition=f"{event.scope}:{event.document_id}",
        metadata={
            "event_id": event.event_id,
            "kind": event.kind,
            "version": event.version if event.version is not None else "none",
        },
    )
