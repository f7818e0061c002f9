"""`kb_review`: a person's decision about a quarantined document, from the launchpad.

Belongs here: what is typed, and the run that carries a released document on from the chunk stage.
What does not: deciding (`stages.review`). Dagster knows no users, so the decision names its author.
A page of the reading side with sign-in does the same: `kb review` and the HTTP API.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import dagster as dg
from pydantic import Field, field_validator

from kb_assets.batch import Priority
from kb_assets.doors import BATCH_TAG
from kb_assets.line import behind_the_gate, executor
from kb_checks.reporting import asset_key
from kb_resources.bindings.events import Recorder
from kb_resources.errors import KbError
from kb_resources.model import DocumentKey, ModelStage, Stage
from kb_resources.stages import review
from kb_resources.stages.line import Line

JOB_NAME = "kb_review"
_DIGEST_CHARS = 12


_ACTS = {"release": review.release, "reject": review.reject}


class ReviewConfig(dg.Config):
    """A decision as it is typed."""

    decision: str = Field(description="release: publish it; reject: delete its texts.")
    document: str = Field(description="scope:document, as the partitions are named.")
    digest: str = Field(description="Of the version you looked at; its first 12 signs do.")
    reason: str = Field(description="Why; kept in the document's log.")
    by: str = Field(description="Who decides; kept in the document's log.")

    @field_validator("decision")
    @classmethod
    def _is_known(cls, decision: str) -> str:
        if decision not in _ACTS:
            raise ValueError(f"write {' or '.join(_ACTS)}")
        return decision

    @field_validator("document")
    @classmethod
    def _is_key(cls, document: str) -> str:
        try:
            return str(DocumentKey.parse(document))
        except KbError as error:
            raise ValueError(str(error)) from error

    @field_validator("digest")
    @classmethod
    def _long_enough(cls, digest: str) -> str:
        if len(digest) < _DIGEST_CHARS or set(digest) - set("0123456789abcdef"):
            raise ValueError(f"write at least {_DIGEST_CHARS} signs of the digest")
        return digest

    @field_validator("reason", "by")
    @classmethod
    def _is_said(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("write something")
        return text.strip()


@dg.op(
    name="decide",
    description="Releases or rejects exactly the version whose digest is named.",
    out=dg.Out(dg.Nothing),
)
def decide(
    context: dg.OpExecutionContext, config: ReviewConfig, line: dg.ResourceParam[Line]
) -> None:
    """Decide, show it on the scan, and hand the document to the steps that follow."""
    key = DocumentKey.parse(config.document)
    caps = line.capabilities
    shown = review.show(caps, key).shown
    if not shown.digest.startswith(config.digest):
        raise dg.Failure(
            f"{key} is version {shown.version} by now, with the digest {shown.digest[:16]}.",
            metadata={"do": "Look at its findings again, then decide."},
            allow_retries=False,
        )
    try:
        _ACTS[config.decision](caps, key, shown, actor=config.by, reason=config.reason)
    except KbError as error:
        raise dg.Failure(str(error), metadata={"code": error.code}, allow_retries=False) from error
    _show(context, key, released=config.decision == "release")
    # What was rejected has nowhere to go: the steps that follow find an empty list.
    going_on = [key] if config.decision == "release" else []
    batch_id = line.new_batch(going_on, actor=config.by, cause=JOB_NAME)
    context.instance.add_run_tags(
        context.run_id, {BATCH_TAG: batch_id, "kb/scope": key.scope, "kb/cause": "review"}
    )


def _show(context: dg.OpExecutionContext, key: DocumentKey, *, released: bool) -> None:
    said = "Released in review." if released else "Rejected in review; its texts are deleted."
    recorder = Recorder(
        context.instance, context.run, context.get_step_execution_context().step.key
    )
    recorder.evaluated(
        [
            dg.AssetCheckEvaluation(
                asset_key=asset_key(Stage.SCAN),
                check_name="verdict_clean",
                passed=released,
                partition=str(key),
                severity=dg.AssetCheckSeverity.ERROR,
                description=said,
                blocking=False,
            )
        ]
    )


@lru_cache
def review_line(models: frozenset[ModelStage] = frozenset()) -> dg.GraphDefinition:
    """A decision, then the stages behind the gate; a rejected document is left out by each."""

    @dg.graph(name="review_line", description="A decision, then the stages behind the gate.")
    def graph() -> None:
        after = decide()
        for _, op in behind_the_gate(models):
            after = op(after).done

    return graph


def kb_review(models: frozenset[ModelStage] = frozenset()) -> dg.JobDefinition:
    """The job; its launchpad is opened, filled in, from the findings of a quarantined document."""
    stages = [stage.value for stage, _ in behind_the_gate(models)]

    @dg.config_mapping
    def to_run_config(val: ReviewConfig) -> Mapping[str, Any]:
        return {
            "ops": {"decide": {"config": val.model_dump()}},
            "resources": {"batch": {"config": {"stages": stages}}},
        }

    return review_line(models).to_job(
        name=JOB_NAME,
        description=(
            "Release or reject a document that the scan holds back. Open it by the links at its "
            "findings (`kb/scan`, partition of the document): document and digest are filled in "
            "there; say why and who you are."
        ),
        config=to_run_config,
        executor_def=executor,
        tags={"dagster/priority": Priority.INTERACTIVE.value},
    )
