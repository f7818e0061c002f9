"""The batch door: `kb_batch` over any list of documents.

Belongs here: the job, its typed configuration, and run requests for it. A stored list (`batch_id`)
or a selection (`scope` and `where`), never both. See
https://docs.dagster.io/guides/operate/configuration/advanced-config-types.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import dagster as dg
from pydantic import Field, field_validator, model_validator

from kb_assets.doors import BATCH_TAG
from kb_assets.line import executor, line_graph
from kb_resources.errors import KbError
from kb_resources.model import ORDER, DocumentState, ModelStage, validate_scope

JOB_NAME = "kb_batch"
MAX_DOCUMENTS = 1000
"""Documents of one run at most: a run stays short enough to stop and to read."""
DEFAULT_DOCUMENTS = 200


class Priority(StrEnum):
    """Who goes first in the run queue: someone waits for `interactive`, nobody for `nightly`."""

    INTERACTIVE = "10"
    BULK = "0"
    NIGHTLY = "-10"


class BatchConfig(dg.Config):
    """What a `kb_batch` run is about."""

    batch_id: str = Field("", description="Id of a stored list of documents.")
    scope: str = Field("", description="Or: the scope to select documents from.")
    where: str = Field(
        "failed", description="States to select, separated by commas: failed, pending, quarantined…"
    )
    documents: list[str] = Field(
        default_factory=list, description="With scope: only these documents, whatever their state."
    )
    limit: int = Field(DEFAULT_DOCUMENTS, ge=1, le=MAX_DOCUMENTS, description="Documents at most.")
    stages: list[str] = Field(
        default_factory=list, description="Stages to run (acquire, parse…); empty: all."
    )

    @field_validator("where")
    @classmethod
    def _known_states(cls, where: str) -> str:
        known = [state.value for state in DocumentState]
        unknown = [name for name in _names(where) if name not in known]
        if unknown or not _names(where):
            raise ValueError(f"{unknown or where!r} is not a state; use one of {', '.join(known)}")
        return where

    @field_validator("stages")
    @classmethod
    def _known_stages(cls, stages: list[str]) -> list[str]:
        known = [stage.value for stage in ORDER]
        unknown = [name for name in stages if name not in known]
        if unknown:
            raise ValueError(f"{unknown} are no stages; use {', '.join(known)}")
        return stages

    @model_validator(mode="after")
    def _one_way(self) -> "BatchConfig":
        if bool(self.batch_id) == bool(self.scope):
            raise ValueError("name either batch_id, or scope with where or documents")
        if len(self.documents) > MAX_DOCUMENTS or (self.documents and self.batch_id):
            raise ValueError(f"documents: {MAX_DOCUMENTS} at most, of one scope")
        if self.scope:
            try:
                validate_scope(self.scope)
            except KbError as error:
                raise ValueError(str(error)) from error
        return self


def _names(where: str) -> list[str]:
    return [name.strip() for name in where.split(",") if name.strip()]


@dg.config_mapping
def _to_run_config(val: BatchConfig) -> Mapping[str, Any]:
    return {
        "resources": {
            "batch": {
                "config": {
                    "batch_id": val.batch_id,
                    "scope": val.scope,
                    "states": _names(val.where),
                    "documents": val.documents,
                    "limit": val.limit,
                    "stages": val.stages,
                }
            }
        }
    }


def kb_batch(models: frozenset[ModelStage] = frozenset()) -> dg.JobDefinition:
    """The job: the same graph as the assets, with the batch as its only configuration."""
    return line_graph(models).to_job(
        name=JOB_NAME,
        description=(
            "Documents through the line in one run: a stored list, or all of a scope in a state "
            "(`scope: acme, where: failed`). Each document gets its own colours and checks; one "
            "that breaks stops no other and fails the run at the end."
        ),
        config=_to_run_config,
        executor_def=executor,
        tags={"dagster/priority": Priority.BULK.value},
    )


def batch_request(
    batch_id: str, *, scopes: Sequence[str], priority: Priority, cause: str
) -> dg.RunRequest:
    """A run of a stored batch; asking twice for the same batch gives one run.

    Args:
        batch_id: the stored list.
        scopes: scopes of its documents; a single one becomes the tag `kb/scope`.
        priority: its place in the queue.
        cause: who asks, for the run's tags.
    """
    return dg.RunRequest(
        run_key=batch_id,
        job_name=JOB_NAME,
        run_config={"batch_id": batch_id},
        tags=batch_tags(batch_id, scopes=scopes, priority=priority, cause=cause),
    )


def batch_tags(
    batch_id: str, *, scopes: Sequence[str], priority: Priority, cause: str
) -> dict[str, str]:
    """Tags of a batch run."""
    return {
        BATCH_TAG: batch_id,
        "kb/cause": cause,
        "kb/scope": scopes[0] if len(set(scopes)) == 1 else "several",
        "dagster/priority": priority.value,
    }
