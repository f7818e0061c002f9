"""`kb_reembed`: an operator starts a re-embedding of one scope and watches it under Backfills.

Belongs here: the job. What does not: the nightly schedule (`reembed`), starting (`stages.reembed`).
Backfills: https://docs.dagster.io/guides/build/partitions-and-backfills/backfilling-data.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from kb_assets.batch import Priority
from kb_assets.reembed import STAGES
from kb_checks.reporting import asset_key
from kb_resources.bindings.events import launch_backfill
from kb_resources.bindings.partitions import add_documents
from kb_resources.errors import KbError
from kb_resources.model import content_hash
from kb_resources.settings import load_settings
from kb_resources.stages import reembed
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import embedded_otherwise

JOB_NAME = "kb_reembed"


class ReembedConfig(dg.Config):
    """What is typed."""

    scope: str = Field(description="Whose vectors are filled beside the live ones.")
    model: str = Field(description="A model of `kb models list`.")
    by: str = Field("operator", description="Who starts it; kept in the scope's log.")


@dg.op(
    name="start_shadow",
    description="Begins a shadow of the model and asks for the backfill that fills it.",
    out=dg.Out(dg.Nothing),
)
def start_shadow(
    context: dg.OpExecutionContext, config: ReembedConfig, line: dg.ResourceParam[Line]
) -> None:
    """Start, and hand over to the daemon."""
    from kb_assets.definitions import defs  # it holds this job

    try:
        held = reembed.start(line.capabilities, config.scope, config.model, actor=config.by)
    except KbError as error:
        raise dg.Failure(str(error), metadata={"code": error.code}, allow_retries=False) from error
    limit = load_settings().reembed_per_night
    keys = [key for key in embedded_otherwise(line, limit) if key.scope == config.scope]
    add_documents(context.instance, keys)
    backfill_id = content_hash(f"reembed {context.run_id}")[:10]
    if keys:
        launch_backfill(
            context.instance,
            defs.get_repository_def(),
            backfill_id=backfill_id,
            assets=[asset_key(stage) for stage in STAGES],
            keys=[str(key) for key in keys],
            tags={
                "kb/cause": "reembed",
                "kb/scope": config.scope,
                "dagster/priority": Priority.BULK.value,
            },
            title=f"Re-embed {config.scope} with {held.beside}",
            description=f"{len(keys)} documents get vectors beside the live ones.",
            now=datetime.now(UTC),
        )
    context.log.info(
        f"{len(keys)} documents to fill. Watch Runs, Backfills, {backfill_id}; when it is done, "
        "kb_scopes/generations says whether kb reembed swap may follow."
    )


@dg.graph(name="reembed_start", description="Begins a shadow; the daemon fills it.")
def reembed_start() -> None:
    """One step."""
    start_shadow()


@dg.config_mapping
def _to_run_config(val: ReembedConfig) -> Mapping[str, Any]:
    return {"ops": {"start_shadow": {"config": val.model_dump()}}}


def kb_reembed() -> dg.JobDefinition:
    """The job; its launchpad is opened, filled in, from the page of `kb_scopes/generations`."""
    return reembed_start.to_job(
        name=JOB_NAME,
        description=(
            "Start filling another embedding model's vectors for one scope, beside those that "
            "searches use. The work is a backfill; `kb_scopes/generations` has links that open "
            "this filled in, and says how far it is."
        ),
        config=_to_run_config,
        tags={"dagster/priority": Priority.INTERACTIVE.value},
    )
