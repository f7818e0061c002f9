"""Checks after parse: did the source become text?"""

from __future__ import annotations

from kb_checks.model import Case, Check, Outcome, each, ended_here, numbers_of
from kb_resources.model import Stage


def _readable(case: Case) -> Outcome:
    counts = case.report.counts
    numbers = dict(numbers_of(case, "replacement_share"))
    if pages := counts.get("pages"):
        numbers["share_of_pages_with_text"] = counts.get("pages_with_text", 0) / pages
    outcome = ended_here(case, numbers)
    warnings = case.report.details.get("warnings") or ()
    if outcome.passed and warnings:
        return Outcome(passed=True, numbers=numbers, note=" ".join(map(str, warnings)))
    return outcome


CHECKS = (
    Check(
        stage=Stage.PARSE,
        name="readable",
        description=(
            "Parsing gave text: not empty, not encrypted, not broken, no page left that only OCR "
            "could read. The numbers say how much of the source was covered."
        ),
        next_step=(
            "Open the source: repair or unlock it, or install OCR for scans; then run it again."
        ),
        severity="WARN",
        judge=each(_readable),
    ),
)
