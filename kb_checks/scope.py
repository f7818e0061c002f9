"""Checks of whole scopes: do the sums match, and does the backlog move?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kb_resources.model import DocumentState
from kb_resources.stages.orchestration import ScopeSums

BACKLOG_S = 3600.0
"""A document pending for longer is not on its way any more."""


@dataclass(frozen=True, slots=True)
class ScopeCheck:
    """A question about every scope.

    Attributes:
        name: unique.
        description: what holds when it passes.
        next_step: what an operator does when it fails.
        severity: Dagster's.
        judge: what is wrong with one scope, empty when nothing is.
    """

    name: str
    description: str
    next_step: str
    severity: Literal["ERROR", "WARN"]
    judge: Callable[[ScopeSums], str]


def problems(check: ScopeCheck, found: Sequence[ScopeSums]) -> list[dict[str, str]]:
    """Rows (`scope`, `what`) for the scopes that break a check."""
    said = ((scope.scope, check.judge(scope)) for scope in found)
    return [{"scope": scope, "what": what} for scope, what in said if what]


def _sums(scope: ScopeSums) -> str:
    counted = sum(scope.states.values())
    indexed = scope.states.get(DocumentState.INDEXED, 0)
    wrong = (
        (counted != scope.documents, f"{scope.documents} documents, but {counted} by state"),
        (
            scope.indexed_without_version,
            f"{scope.indexed_without_version} of {indexed} indexed documents do not have exactly "
            "one current version",
        ),
        (scope.passages_adrift, f"{scope.passages_adrift} current passages of no current version"),
    )
    return "; ".join(text for is_wrong, text in wrong if is_wrong)


def _backlog(scope: ScopeSums) -> str:
    pending = scope.states.get(DocumentState.PENDING, 0)
    if pending and scope.backlog_age_s > BACKLOG_S:
        return f"{pending} pending, the oldest for {scope.backlog_age_s / 3600:.1f} h"
    return ""


def _failed(scope: ScopeSums) -> str:
    failed = scope.states.get(DocumentState.FAILED, 0)
    return f"{failed} of {scope.documents} documents failed" if failed else ""


def _reviews(scope: ScopeSums) -> str:
    waiting = scope.states.get(DocumentState.QUARANTINED, 0)
    return f"{waiting} of {scope.documents} documents wait for a decision" if waiting else ""


CHECKS = (
    ScopeCheck(
        name="sums_match",
        description="Documents by state, versions and published passages of each scope add up.",
        next_step="Run the scope's documents again from index; report it if they still differ.",
        severity="ERROR",
        judge=_sums,
    ),
    ScopeCheck(
        name="backlog_moves",
        description="No document has been pending for more than an hour.",
        next_step="Look whether the daemon runs; launch kb_batch with where: pending.",
        severity="WARN",
        judge=_backlog,
    ),
    ScopeCheck(
        name="nothing_failed",
        description="No document ended as failed: what broke on the way was mended and retried.",
        next_step=(
            "Read why on this asset's overview, under waiting_01 and on; retry by the links there."
        ),
        severity="WARN",
        judge=_failed,
    ),
    ScopeCheck(
        name="reviews_decided",
        description="No document that the scan quarantined waits for a person's decision.",
        next_step=(
            "Open the findings by the link on this asset's overview, under waiting_01 and on; "
            "release or reject from there, or with kb review."
        ),
        severity="WARN",
        judge=_reviews,
    ),
)
