"""Every night: fill the shadows, as a backfill that operators see.

Belongs here: choosing the documents and asking for the backfill. What does not: embedding, and
swapping, which an operator does (`kb reembed swap`) once the asset `kb_scopes/generations` says
that it may be done. Schedules: https://docs.dagster.io/guides/automate/schedules.
"""

from datetime import UTC, datetime

import dagster as dg

from kb_assets.batch import Priority
from kb_checks.reporting import asset_key
from kb_resources.bindings.events import launch_backfill
from kb_resources.bindings.partitions import add_documents
from kb_resources.model import Stage, content_hash
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import embedded_otherwise
from kb_resources.stages.reembed import start_where_wanted

STAGES = (Stage.EMBED, Stage.INDEX, Stage.SUPERSEDE)
ACTOR = "reembed_nightly"


@dg.schedule(
    name="reembed_nightly",
    cron_schedule="30 2 * * *",
    target=dg.AssetSelection.assets(*(asset_key(stage) for stage in STAGES)),
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Scopes that are searched by another model than KB_MODEL begin a shadow of it. Documents "
        "that lack vectors of a shadow get them beside the live ones, scope by scope, at most "
        "KB_REEMBED_PER_NIGHT a night, as one backfill. Searches go on by the live vectors; "
        "kb reembed swap changes that."
    ),
)
def reembed_nightly(
    context: dg.ScheduleEvaluationContext, line: dg.ResourceParam[Line]
) -> dg.SkipReason:
    """Ask for tonight's backfill; a schedule that asks for no run of its own."""
    limit = load_settings().reembed_per_night
    begun = start_where_wanted(line.capabilities, actor=ACTOR)
    keys = embedded_otherwise(line, limit)
    if not keys:
        return dg.SkipReason("No document lacks a vector of its scope's models.")
    add_documents(context.instance, keys)
    night = context.scheduled_execution_time.astimezone(UTC).date().isoformat()
    backfill_id = content_hash(f"reembed {night}")[:10]
    asked = launch_backfill(
        context.instance,
        context.repository_def,
        backfill_id=backfill_id,
        assets=[asset_key(stage) for stage in STAGES],
        keys=[str(key) for key in keys],
        tags={"kb/cause": "reembed", "dagster/priority": Priority.NIGHTLY.value},
        title="Fill the shadow generations",
        description=f"{len(keys)} documents without vectors of a shadow, {night}.",
        now=datetime.now(UTC),
    )
    state = "asked for" if asked else "was asked for before"
    new = f" New shadows: {', '.join(begun)}." if begun else ""
    return dg.SkipReason(f"Backfill {backfill_id} over {len(keys)} documents {state}.{new}")
