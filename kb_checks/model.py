"""What a check is: a question about documents at a stage, answered from the ledger.

Belongs here: shapes and the two ways to write a check. What does not: Dagster (`reporting`) and the
questions themselves (one module per stage).
Severities are Dagster's, https://docs.dagster.io/guides/test/asset-checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kb_resources.model import AnyStage, DocumentKey, StageReport


@dataclass(frozen=True, slots=True)
class Case:
    """One document at one stage.

    Attributes:
        key: the document.
        report: what the stage did with it.
        facts: what the ledger says about it now (`Line.facts`), and `token_limit` in tokens.
    """

    key: DocumentKey
    report: StageReport
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer for one document.

    Attributes:
        passed: whether it holds.
        numbers: measures for plots; the same names every time, so that a line can be drawn.
        problems: what is wrong, one row each (`what`, `where`); empty when it passed.
        note: one sentence for a person, never text of the document.
    """

    passed: bool
    numbers: Mapping[str, float] = field(default_factory=dict)
    problems: Sequence[Mapping[str, str]] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A question about documents at one stage.

    Attributes:
        stage: after which stage it is asked.
        name: unique within the stage.
        description: what holds when it passes, for the asset's page.
        next_step: what an operator does when it fails.
        severity: `ERROR` where something is broken or a gate held, `WARN` where a document was
            turned away as intended.
        judge: answers for all cases of a group at once; None where the question does not apply.
    """

    stage: AnyStage
    name: str
    description: str
    next_step: str
    severity: Literal["ERROR", "WARN"]
    judge: Callable[[Sequence[Case]], Sequence[Outcome | None]]


def each(
    judge: Callable[[Case], Outcome | None],
) -> Callable[[Sequence[Case]], Sequence[Outcome | None]]:
    """Lift an answer for one case to a group of them."""

    def judge_all(cases: Sequence[Case]) -> Sequence[Outcome | None]:
        return [judge(case) for case in cases]

    return judge_all


def ended_here(case: Case, numbers: Mapping[str, float]) -> Outcome:
    """Pass unless the document's way ended in this stage; then its reason is the problem."""
    report = case.report
    if report.state is None:
        return Outcome(passed=True, numbers=numbers)
    problem = {"what": report.state.value, "where": str(case.facts.get("origin") or case.key)}
    return Outcome(passed=False, numbers=numbers, problems=[problem], note=report.reason)


def numbers_of(case: Case, *names: str) -> dict[str, float]:
    """The named counts of the stage's report; 0 where the stage did not get that far."""
    return {name: float(case.report.counts.get(name, 0)) for name in names}
