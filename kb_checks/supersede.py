"""Checks after supersede: exactly one version of the document holds now."""

from __future__ import annotations

from kb_checks.gate import cleared
from kb_checks.model import Case, Check, Outcome, each
from kb_resources.model import Stage


def _one_current_version(case: Case) -> Outcome | None:
    if case.report.refused:
        return None
    current = int(case.facts["index"]["current_versions"])
    return Outcome(
        passed=current == 1,
        numbers={"current_versions": current},
        problems=[]
        if current == 1
        else [{"what": f"{current} versions hold now", "where": "document"}],
    )


CHECKS = (
    cleared(Stage.SUPERSEDE),
    Check(
        stage=Stage.SUPERSEDE,
        name="one_current_version",
        description="Exactly one version of the document is valid from now on.",
        next_step="Look at `kb documents history`; run the document again from index.",
        severity="ERROR",
        judge=each(_one_current_version),
    ),
)
