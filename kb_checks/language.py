"""Checks after language: is it one that the scope accepts?"""

from __future__ import annotations

from kb_checks.model import Case, Check, Outcome, each, ended_here, numbers_of
from kb_resources.model import Stage


def _allowed(case: Case) -> Outcome:
    outcome = ended_here(case, numbers_of(case, "confidence"))
    language = case.report.details.get("language")
    note = outcome.note or f"Language: {language}."
    return Outcome(outcome.passed, outcome.numbers, outcome.problems, note)


CHECKS = (
    Check(
        stage=Stage.LANGUAGE,
        name="language_allowed",
        description=(
            "The visible text is in a language that the scope accepts, or too short to tell. A "
            "refused document keeps its digest and the reason; its text is gone."
        ),
        next_step="Add the language to the scope, or state it with --language if it was misread.",
        severity="WARN",
        judge=each(_allowed),
    ),
)
