"""Checks after convert: does the body still say what the document says?"""

from __future__ import annotations

from kb_checks.gate import cleared
from kb_checks.model import Case, Check, Outcome, each, ended_here, numbers_of
from kb_resources.model import ModelStage

_KEPT = ("converted", "not_needed")


def _body_kept(case: Case) -> Outcome | None:
    if case.report.refused:
        return None
    numbers = numbers_of(case, "kept", "added", "foreign", "lost")
    if case.report.state is not None:
        return ended_here(case, numbers)
    outcome = str(case.report.details.get("outcome"))
    if outcome in _KEPT:
        return Outcome(passed=True, numbers=numbers)
    problem = {"what": outcome, "where": str(case.facts.get("origin") or case.key)}
    note = " ".join(map(str, case.report.details.get("warnings") or ()))
    return Outcome(passed=False, numbers=numbers, problems=[problem], note=note)


CHECKS = (
    cleared(ModelStage.CONVERT),
    Check(
        stage=ModelStage.CONVERT,
        name="faithful",
        description=(
            "The model's Markdown says word for word what parsing found, and passed the scan; or "
            "the format needs no conversion. Where it fails, the deterministic parse is kept."
        ),
        next_step="Nothing, if the parse reads well; else try another model or KB_CONVERT_FILES.",
        severity="WARN",
        judge=each(_body_kept),
    ),
)
