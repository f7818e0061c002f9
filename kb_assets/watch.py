"""The sensor over all watched addresses: one look a tick, runs only for pages that changed.

Belongs here: ticks, batches, run requests. What does not: looking (`stages.watch_check`); all that
has to be remembered is in the ledger, so the sensor has no cursor.
Sensors: https://docs.dagster.io/guides/automate/sensors.
"""

from collections.abc import Callable
from dataclasses import replace

import dagster as dg

from kb_assets.batch import DEFAULT_DOCUMENTS, JOB_NAME, Priority, batch_request
from kb_resources.acquire import Fetcher
from kb_resources.bindings.partitions import documents
from kb_resources.model import DocumentKey
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.watch_check import CheckOptions, check_due

SENSOR_NAME = "watched_urls"
SECONDS_PER_TICK = 30.0
LONGEST_FETCH_S = 20.0
"""Together well inside the 60 s that the code server has to answer; slower pages are for
`kb watch check`, which gives each `KB_FETCH_TIMEOUT_S`."""
CAUSE = "watched pages"


def watch_sensor(options: Callable[[], CheckOptions]) -> dg.SensorDefinition:
    """The running sensor.

    Args:
        options: gives the bounds of a look; called in the tick, so that no setting is read on
            import.
    """

    @dg.sensor(
        name=SENSOR_NAME,
        job_name=JOB_NAME,
        description=(
            "Looks at the watched pages whose time has come (`kb watch add`), asking each site "
            "politely. Pages whose text changed go through the line in batches; a page that says "
            "304, or changed in its banner alone, makes no run."
        ),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def sensor(
        context: dg.SensorEvaluationContext, line: dg.ResourceParam[Line]
    ) -> dg.SensorResult | dg.SkipReason:
        if line.capabilities.fetcher is None:
            return dg.SkipReason("This line cannot fetch.")
        report = check_due(line, hurried(line.capabilities.fetcher).fetch, options())
        context.log.info(f"{report}.")
        keys = list(report.keys)
        if not keys:
            return dg.SkipReason(f"{report}.")
        return dg.SensorResult(
            run_requests=[
                _request(line, keys[start : start + DEFAULT_DOCUMENTS])
                for start in range(0, len(keys), DEFAULT_DOCUMENTS)
            ],
            dynamic_partitions_requests=[documents.build_add_request([str(key) for key in keys])],
        )

    return sensor


def hurried(fetcher: Fetcher) -> Fetcher:
    """The same, but no fetch that begins in a tick goes on past its end."""
    longest_s = min(fetcher.policy.timeout_s, LONGEST_FETCH_S)
    return replace(fetcher, policy=replace(fetcher.policy, timeout_s=longest_s))


def default_options() -> CheckOptions:
    """Bounds of a tick, politeness from the settings."""
    return CheckOptions(seconds=SECONDS_PER_TICK, delay_s=load_settings().fetch_delay_s)


def _request(line: Line, keys: list[DocumentKey]) -> dg.RunRequest:
    batch_id = line.new_batch(keys, actor=SENSOR_NAME, cause=CAUSE)
    return batch_request(
        batch_id, scopes=[key.scope for key in keys], priority=Priority.BULK, cause=CAUSE
    )
