"""The gate as operators see it: a refused launch of a later stage leaves a red trace.

Belongs here: the `cleared` check that chunk, embed, index and supersede carry. What does not: the
gate itself, which is the ledger's verdict and a trigger on the retrieval tables.
"""

from __future__ import annotations

from kb_checks.model import Case, Check, Outcome, each
from kb_resources.model import AnyStage, Stage

CLEARED = "cleared"
GATED = (Stage.CHUNK, Stage.EMBED, Stage.INDEX, Stage.SUPERSEDE)


def _cleared(case: Case) -> Outcome:
    numbers = {"refused": float(case.report.refused)}
    if not case.report.refused:
        return Outcome(passed=True, numbers=numbers)
    verdict = str(case.facts.get("verdict") or "none")
    return Outcome(
        passed=False,
        numbers=numbers,
        problems=[{"what": f"verdict: {verdict}", "where": f"version {case.report.version}"}],
        note=case.report.reason,
    )


def cleared(stage: AnyStage) -> Check:
    """The `cleared` check of a stage behind the gate."""
    return Check(
        stage=stage,
        name=CLEARED,
        description=(
            "The scan gave a clean verdict for exactly the bytes and the body this stage worked "
            "on. Fails when someone launched the stage for a version that is not cleared; nothing "
            "was written then."
        ),
        next_step="Do what the reason says; then run the document through kb_batch.",
        severity="ERROR",
        judge=each(_cleared),
    )
