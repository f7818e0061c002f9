"""Documents that a run left behind: killed workers, lost requests, woken duplicates.

Belongs here: noticing them and asking for another run, a few times. What does not: documents that
failed, which wait for an operator (`kb_batch` with `where: failed`).
"""

from collections.abc import Sequence

import dagster as dg

from kb_assets.batch import JOB_NAME, Priority, batch_request
from kb_assets.doors import BATCH_TAG
from kb_assets.workers import clear_up
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import Waiting, waiting_documents

GRACE_S = 120.0
"""Pending for less than this is on its way."""
MAX_TRIES = 3
LIMIT = 200


@dg.sensor(
    name="stranded_documents",
    job_name=JOB_NAME,
    description=(
        "Takes up documents that are pending though no run is working on them: the run was "
        f"killed, its request was lost, or a duplicate came back to life. {MAX_TRIES} times; "
        "after that the scope's health shows the backlog."
    ),
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def stranded_documents(
    context: dg.SensorEvaluationContext, line: dg.ResourceParam[Line]
) -> dg.SensorResult | dg.SkipReason:
    """Give stranded documents another run."""
    for run_id in clear_up(context.instance):
        context.log.warning(f"Run {run_id} lost its worker.")
    waiting = waiting_documents(line, older_than_s=GRACE_S, max_tries=MAX_TRIES, limit=LIMIT)
    lost, left_behind = sort_out(context.instance, waiting)
    requests = [_request(batch_id, items) for batch_id, items in lost.items()]
    if left_behind:
        keys = [item.key for item in left_behind]
        batch_id = line.new_batch(keys, actor="stranded_documents", cause="stranded")
        requests.append(_request(batch_id, left_behind))
    if not requests:
        return dg.SkipReason("No document is stranded.")
    return dg.SensorResult(run_requests=requests)


def sort_out(
    instance: dg.DagsterInstance, waiting: Sequence[Waiting]
) -> tuple[dict[str, list[Waiting]], list[Waiting]]:
    """Tell batches that never got their run from documents that their run left behind.

    Returns:
        Batches to request once more, and documents to put into a new one. Documents whose run
        goes on are in neither.
    """
    lost: dict[str, list[Waiting]] = {}
    left_behind: list[Waiting] = []
    runs: dict[str, list[dg.DagsterRun]] = {}
    for item in waiting:
        if item.batch_id is None:
            left_behind.append(item)
            continue
        if item.batch_id not in runs:
            runs[item.batch_id] = list(
                instance.get_runs(dg.RunsFilter(tags={BATCH_TAG: item.batch_id}))
            )
        if not runs[item.batch_id]:
            lost.setdefault(item.batch_id, []).append(item)
        elif all(run.is_finished for run in runs[item.batch_id]):
            left_behind.append(item)
    return lost, left_behind


def _request(batch_id: str, items: Sequence[Waiting]) -> dg.RunRequest:
    return batch_request(
        batch_id,
        scopes=[item.scope for item in items],
        priority=Priority.BULK,
        cause="stranded",
    )
