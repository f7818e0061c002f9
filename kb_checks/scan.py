"""Checks after scan: did it see everything, and is the verdict clean?

Excerpts of findings stay out of the events: Dagster keeps those longer than a purge lasts.
"""

from __future__ import annotations

from kb_checks.model import Case, Check, Outcome, each, numbers_of
from kb_resources.model import Stage, Verdict


def _covers_all_text(case: Case) -> Outcome:
    numbers = numbers_of(case, "scanned_bytes")
    if not case.report.details.get("truncated"):
        return Outcome(passed=True, numbers=numbers)
    problem = {"what": "a limit ended the scan early", "where": str(case.facts.get("origin"))}
    return Outcome(passed=False, numbers=numbers, problems=[problem])


def _verdict_clean(case: Case) -> Outcome:
    numbers = numbers_of(case, "findings", "findings_high")
    verdict = case.report.details.get("verdict")
    if verdict == Verdict.CLEAN:
        return Outcome(passed=True, numbers=numbers)
    problems = [
        {
            "what": f"{finding['severity']}: {finding['rule_id']}",
            "where": _place(finding),
        }
        for finding in case.facts.get("findings", ())
    ]
    return Outcome(
        passed=False,
        numbers=numbers,
        problems=problems,
        note=f"Verdict: {verdict}. {case.report.reason}",
    )


def _place(finding: dict[str, object]) -> str:
    span = f"{finding['part']} bytes {finding['byte_start']}–{finding['byte_end']}"
    return f"{finding['place']}, {span}" if finding["place"] else span


CHECKS = (
    Check(
        stage=Stage.SCAN,
        name="covers_all_text",
        description=(
            "The scan read the whole raw extraction, hidden parts included, before any model saw "
            "a word of it."
        ),
        next_step="Split the source, or raise the scan's limits, and scan it again.",
        severity="ERROR",
        judge=each(_covers_all_text),
    ),
    Check(
        stage=Stage.SCAN,
        name="verdict_clean",
        description=(
            "No rule found text that addresses a model. Quarantined documents wait for a reviewer, "
            "blocked ones are purged; neither reaches the retrieval tables."
        ),
        next_step="Review the findings; release the document, or reject it and repair its source.",
        severity="ERROR",
        judge=each(_verdict_clean),
    ),
)
