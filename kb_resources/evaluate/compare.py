"""Two runs over the same questions: what changed, and whether that is worse.

Belongs here: pairing, differences, the rule of the gate. What does not: keeping runs. Paired
bootstrap: Sakai, "Evaluating evaluation metrics based on the bootstrap hypothesis test", 2006.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kb_resources.errors import InputError
from kb_resources.evaluate.bootstrap import paired
from kb_resources.evaluate.evaluation import MEASURES
from kb_resources.evaluate.score import Judged

TOLERANCE = 0.01
"""A loss of nDCG@10 up to this is let through, unless it is beyond chance."""
LARGE = 0.03
"""A loss of nDCG@10 above this is never let through, beyond chance or not."""


@dataclass(frozen=True, slots=True)
class Difference:
    """New minus old of one measure: mean, 95 % interval, two-sided p of the paired bootstrap."""

    mean: float
    low: float
    high: float
    p: float

    def to_json(self) -> dict[str, float]:
        """Rounded to four places."""
        values = {"mean": self.mean, "low": self.low, "high": self.high, "p": self.p}
        return {name: round(value, 4) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, paired by question.

    Attributes:
        questions: answerable questions in both.
        only_old: ids that the new run lacks.
        only_new: ids that the old run lacks.
        differences: by measure, as in `Figure.means`; of unanswerable questions `nothing`.
        worse: ids whose nDCG fell, worst first.
        better: ids whose nDCG rose, best first.
    """

    questions: int
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    differences: Mapping[str, Difference]
    worse: tuple[str, ...]
    better: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return {
            "questions": self.questions,
            "only_old": list(self.only_old),
            "only_new": list(self.only_new),
            "differences": {name: item.to_json() for name, item in self.differences.items()},
            "worse": list(self.worse),
            "better": list(self.better),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a run may take the place of the accepted one, and why not or why."""

    passed: bool
    reason: str
    comparison: Comparison | None = None


def compare(old: Sequence[Judged], new: Sequence[Judged]) -> Comparison:
    """Pair two runs by question id.

    Raises:
        InputError: fewer than two questions are in both.
    """
    before = {item.id: item for item in old}
    after = {item.id: item for item in new}
    pairs = [(before[name], item) for name, item in after.items() if name in before]
    answerable = [pair for pair in pairs if pair[0].answerable and pair[1].answerable]
    if len(answerable) < 2:
        raise InputError(
            f"The runs have {len(answerable)} answerable questions in common.",
            next_step="Compare runs over the same question file and half.",
            code="not_comparable",
        )
    differences = {
        name: _difference([of(b) - of(a) for a, b in answerable]) for name, of in MEASURES.items()
    }
    others = [pair for pair in pairs if not (pair[0].answerable or pair[1].answerable)]
    if len(others) > 1:
        differences["nothing"] = _difference([float(b.nothing) - a.nothing for a, b in others])
    changed = sorted((b.ndcg - a.ndcg, b.id) for a, b in answerable)
    return Comparison(
        questions=len(answerable),
        only_old=tuple(name for name in before if name not in after),
        only_new=tuple(name for name in after if name not in before),
        differences=differences,
        worse=tuple(name for change, name in changed if change < 0),
        better=tuple(name for change, name in reversed(changed) if change > 0),
    )


def not_worse(accepted: Sequence[Judged] | None, new: Sequence[Judged]) -> Verdict:
    """The gate before defaults or generations change.

    Passes without an accepted run. Otherwise nDCG@10 may not fall by more than `LARGE`, nor by
    more than `TOLERANCE` with an interval wholly below zero, and no question that the accepted run
    was asked may be missing: a set made easier proves nothing.

    Args:
        accepted: questions of the run that was accepted last, or None.
        new: of the run to judge.
    """
    if accepted is None:
        return Verdict(True, "No run of these questions has been accepted yet.")
    try:
        found = compare(accepted, new)
    except InputError as error:
        return Verdict(False, str(error))
    if found.only_old:
        return Verdict(False, f"{len(found.only_old)} accepted questions were not asked.", found)
    change = found.differences["ndcg_10"]
    spread = f"nDCG@10 {change.mean:+.4f} [{change.low:+.4f}, {change.high:+.4f}]"
    if change.mean < -LARGE or (change.mean < -TOLERANCE and change.high < 0):
        return Verdict(False, f"Worse than the accepted run: {spread}.", found)
    return Verdict(True, f"Not worse than the accepted run: {spread}.", found)


def _difference(values: Sequence[float]) -> Difference:
    low, high, p = paired(values)
    return Difference(sum(values) / len(values), low, high, p)
