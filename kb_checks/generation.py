"""Checks of generations: is a full shadow good enough to be searched by, and is anything stuck?

Belongs here: questions about scopes whose vectors are being replaced, answered from what the stages
measured. What does not: measuring, and the thresholds (`kb_resources.stages.swap_quality`), since
`kb reembed swap` holds to the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kb_resources.stages.reembed_view import Status
from kb_resources.stages.swap_quality import Quality


@dataclass(frozen=True, slots=True)
class GenerationCheck:
    """A question about every scope with vectors.

    Attributes:
        name: unique.
        description: what holds when it passes.
        next_step: what an operator does when it fails.
        severity: Dagster's.
        judge: what is wrong with one scope, empty when nothing is; `Quality` is None where no full
            shadow lies beside.
    """

    name: str
    description: str
    next_step: str
    severity: Literal["ERROR", "WARN"]
    judge: Callable[[Status, Quality | None], str]


def problems(
    check: GenerationCheck, found: Sequence[Status], measured: Mapping[str, Quality]
) -> list[dict[str, str]]:
    """Rows (`scope`, `what`) for the scopes that break a check."""
    said = ((each.scope, check.judge(each, measured.get(each.scope))) for each in found)
    return [{"scope": scope, "what": what} for scope, what in said if what]


def _swap_quality(_: Status, quality: Quality | None) -> str:
    return "; ".join(quality.problems) if quality else ""


def _live_as_set(status: Status, _: Quality | None) -> str:
    if status.live == status.wanted:
        return ""
    return f"searched by {status.live}, KB_MODEL is {status.wanted}"


def _nothing_given_up(status: Status, _: Quality | None) -> str:
    if not status.failed:
        return ""
    first = status.failed[0]
    return f"{len(status.failed)} documents were given up, {first.document_id}: {first.error}"


CHECKS = (
    GenerationCheck(
        name="swap_quality",
        description=(
            "Every full shadow finds what the live vectors find: known passages among ten, and "
            "lists that agree. The same thresholds hold for kb reembed swap."
        ),
        next_step="Look at kb reembed check; drop the shadow, or fill it again.",
        severity="ERROR",
        judge=_swap_quality,
    ),
    GenerationCheck(
        name="live_as_set",
        description="Every scope is searched by the model that the installation is set to.",
        next_step="Let it be filled, then kb reembed swap; or set KB_MODEL back.",
        severity="WARN",
        judge=_live_as_set,
    ),
    GenerationCheck(
        name="nothing_given_up",
        description="No document was given up while its vectors were filled.",
        next_step="See kb reembed status; then kb reembed fill --retry-failed.",
        severity="WARN",
        judge=_nothing_given_up,
    ),
)
