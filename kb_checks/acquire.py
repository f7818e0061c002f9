"""Checks after acquire: were the bytes taken in?"""

from __future__ import annotations

from kb_checks.model import Case, Check, Outcome, each, ended_here, numbers_of
from kb_resources.model import DocumentState, Stage

_FINE = (None, DocumentState.INDEXED, DocumentState.DUPLICATE)


def _accepted(case: Case) -> Outcome | None:
    if not case.report.worked and case.report.state is not None and case.report.version:
        # Unchanged since it was settled: its own checks stand.
        return None
    numbers = numbers_of(case, "bytes")
    if case.report.state in _FINE:
        return Outcome(passed=True, numbers=numbers, note=case.report.reason)
    return ended_here(case, numbers)


CHECKS = (
    Check(
        stage=Stage.ACQUIRE,
        name="accepted",
        description=(
            "The source could be read, is of a supported type and within the limits. Bytes already "
            "known for the same readers pass as a duplicate."
        ),
        next_step="Replace the source by one that can be read, or raise the limit it names.",
        severity="WARN",
        judge=each(_accepted),
    ),
)
