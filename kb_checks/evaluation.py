"""Checks of evaluations: is what search finds no worse than what was accepted?

Belongs here: the question about one set of labelled questions. What does not: asking them
(`kb_resources.stages.evaluation`), the rule itself (`kb_resources.evaluate.compare`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb_resources.evaluate import Judged, Verdict, not_worse

NAME = "not_worse"
DESCRIPTION = (
    "nDCG@10 of every question file is not worse than that of the run that was accepted last: no "
    "loss beyond chance above 0.01, none above 0.03 at all, no accepted question left out.\n\n"
    "When it fails: look at what changed (kb eval compare ACCEPTED NEW); mend it, or accept the "
    "run with kb eval accept where the loss is wanted."
)


@dataclass(frozen=True, slots=True)
class SetOutcome:
    """One question file's answer.

    Attributes:
        scope: scope name.
        name: of the file.
        run_id: of the new run, empty where the file could not be asked.
        accepted_id: of the accepted run, or None.
        verdict: whether the new run may stand.
    """

    scope: str
    name: str
    run_id: str
    accepted_id: str | None
    verdict: Verdict

    @property
    def row(self) -> dict[str, str]:
        """For the check's table."""
        return {
            "scope": self.scope,
            "questions": self.name,
            "run": self.run_id,
            "accepted": self.accepted_id or "",
            "passed": "yes" if self.verdict.passed else "no",
            "why": self.verdict.reason,
        }


def outcome(
    scope: str,
    name: str,
    run_id: str,
    new: Sequence[Judged],
    accepted: tuple[str, Sequence[Judged]] | None,
) -> SetOutcome:
    """Hold a run against the accepted one, if there is one."""
    verdict = not_worse(accepted[1] if accepted else None, new)
    return SetOutcome(scope, name, run_id, accepted[0] if accepted else None, verdict)


def broken(scope: str, name: str, why: str) -> SetOutcome:
    """A file that could not be asked: that is no pass."""
    return SetOutcome(scope, name, "", None, Verdict(False, why))
