"""What happens when a run fails: its documents get their colours, operators get a line.

A run that raised for broken documents has coloured them already. A worker that was killed could
not: its documents are still pending, and here they turn red in the stage where it stopped.
Run status sensors: https://docs.dagster.io/guides/automate/run-status-sensors.
"""

import dagster as dg

from kb_assets.alerts import send
from kb_assets.batch import JOB_NAME
from kb_assets.doors import BATCH_TAG
from kb_checks.reporting import asset_key
from kb_resources.bindings.events import Recorder
from kb_resources.model import AnyStage, stage_of
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line

AFTER_STEPS = f"Look at its steps; then launch {JOB_NAME} with where: failed."
NEVER_BEGAN = (
    "None of its steps began. Where every run ends so, the code server hangs on a process that "
    "does not answer: end that process, restart the code server (make down, make up); what waits "
    "is taken up."
)
"""What to do about a run that failed, by whether it had come to its steps."""


@dg.run_failure_sensor(
    name="run_failures",
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=30,
    description=(
        "Logs each failed run with what to do next, and marks the documents that a killed worker "
        "left in the middle. Alerts go to KB_ALERT_URL and KB_ALERT_TO where they are set."
    ),
)
def run_failures(context: dg.RunFailureSensorContext, line: dg.ResourceParam[Line]) -> None:
    """Log the failure; colour what the run left unfinished."""
    run = context.dagster_run
    begun = bool(context.instance.get_run_step_stats(run.run_id))
    context.log.error(
        f"Run {run.run_id} of {run.job_name} failed ({run.tags.get('kb/cause', 'by hand')}): "
        f"{context.failure_event.message} {AFTER_STEPS if begun else NEVER_BEGAN}"
    )
    for undelivered in send(load_settings(), *alert(run, begun=begun)):
        context.log.error(f"The alert was not delivered by {undelivered}")
    if run.job_name == JOB_NAME:
        color_unfinished(context.instance, line, run)


def alert(run: dg.DagsterRun, *, begun: bool = True) -> tuple[str, dict[str, str]]:
    """Subject and facts of what people are told; no text of documents, no error that quotes it.

    Args:
        run: that failed.
        begun: whether any of its steps did.
    """
    facts = {
        "run": run.run_id,
        "job": run.job_name,
        "scope": run.tags.get("kb/scope", ""),
        "cause": run.tags.get("kb/cause", "by hand"),
        "next": f"Open the run in Dagster. {AFTER_STEPS if begun else NEVER_BEGAN}",
    }
    return f"dagster-kb: run {run.run_id[:8]} of {run.job_name} failed", facts


def color_unfinished(
    instance: dg.DagsterInstance, line: Line, run: dg.DagsterRun
) -> AnyStage | None:
    """Turn red what a killed worker left in the middle; returns the stage, None without one."""
    batch_id, stage = run.tags.get(BATCH_TAG), interrupted_stage(instance, run)
    if not batch_id or stage is None:
        return None
    unfinished = line.in_line(stage, line.batch(batch_id))
    Recorder(instance, run).planned(asset_key(stage), [str(key) for key in unfinished])
    return stage


def interrupted_stage(instance: dg.DagsterInstance, run: dg.DagsterRun) -> AnyStage | None:
    """The stage whose step was started and never ended; None where every step ended."""
    steps = instance.get_run_step_stats(run.run_id)
    open_steps = [step.step_key for step in steps if step.end_time is None]
    return stage_of(open_steps[-1]) if open_steps else None
