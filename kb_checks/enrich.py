"""Checks after enrich: did every section get its notes?"""

from __future__ import annotations

from kb_checks.gate import cleared
from kb_checks.model import Case, Check, Outcome, each, numbers_of
from kb_resources.model import ModelStage


def _noted(case: Case) -> Outcome | None:
    if case.report.refused:
        return None
    numbers = numbers_of(case, "notes", "asked", "known")
    outcomes = case.report.details.get("outcomes") or {}
    problems = [{"what": f"{name}: {n}", "where": str(case.key)} for name, n in outcomes.items()]
    note = " ".join(map(str, case.report.details.get("warnings") or ()))
    return Outcome(passed=not problems, numbers=numbers, problems=problems, note=note)


CHECKS = (
    cleared(ModelStage.ENRICH),
    Check(
        stage=ModelStage.ENRICH,
        name="noted",
        description="Every section from 500 characters on has a summary, new or taken over.",
        next_step="Look at the endpoint; materialise kb/enrich of the document again.",
        severity="WARN",
        judge=each(_noted),
    ),
)
