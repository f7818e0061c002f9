"""One evaluation: questions asked, rankings judged, figures by slice and language.

Belongs here: going through the questions and averaging. What does not: searching, which the caller
hands in as a function, so that shadow generations and other engines are measured by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kb_resources.errors import InputError
from kb_resources.evaluate.bootstrap import interval
from kb_resources.evaluate.questions import Half, Question
from kb_resources.evaluate.score import GAINS, Gain, Judged, Searcher, judge

CUT = 10
"""Ranks that nDCG looks at."""
POOL = 100
"""Hits asked for; R@100, MRR and recall look at all of them."""
ALL = "all"


@dataclass(frozen=True, slots=True)
class Figure:
    """Means over one group of questions, with 95 % bootstrap intervals.

    Attributes:
        questions: answerable ones in the group.
        means: `ndcg_10`, `r_1`, `r_5`, `r_100` (share of questions with an answer by that rank),
            `mrr`, `recall_100` (share of labels in the pool); `lost`: of the questions whose
            first place answers, the share answered with nothing.
        intervals: low and high by the same names; absent under two questions.
        unanswerable: questions without an answer in the group.
        nothing: share of these answered with nothing, None without any.
    """

    questions: int
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    unanswerable: int
    nothing: float | None

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form, rounded to four places."""
        return {
            "questions": self.questions,
            "means": {name: round(value, 4) for name, value in self.means.items()},
            "intervals": {
                name: [round(low, 4), round(high, 4)]
                for name, (low, high) in self.intervals.items()
            },
            "unanswerable": self.unanswerable,
            "nothing": None if self.nothing is None else round(self.nothing, 4),
        }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished run.

    Attributes:
        scope: what was searched.
        gain: `binary` or `graded` (2^grade - 1).
        half: which half was asked, or None for both.
        figures: by group: `all`, `language:de`, `slice:exact`.
        judged: one row per question, in the file's order.
    """

    scope: str
    gain: Gain
    half: Half | None
    figures: Mapping[str, Figure]
    judged: tuple[Judged, ...]

    @property
    def overall(self) -> Figure:
        """Figures over all questions."""
        return self.figures[ALL]

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return {
            "scope": self.scope,
            "gain": self.gain,
            "cut": CUT,
            "pool": POOL,
            "half": self.half,
            "figures": {name: figure.to_json() for name, figure in self.figures.items()},
            "questions": [asdict(item) | {"top": list(item.top)} for item in self.judged],
        }


def run(
    scope: str,
    questions: Sequence[Question],
    searcher: Searcher,
    *,
    half: Half | None = None,
    gain: Gain = "binary",
    cut: int = CUT,
    seen: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Ask every question and judge what comes back.

    Args:
        scope: name of what is searched, for the record.
        questions: labelled.
        searcher: gives up to `POOL` places for a question, best first.
        half: ask only this half; None: all.
        gain: what a label is worth: 1, or 2^grade - 1.
        cut: ranks that nDCG looks at.
        seen: told how many of how many questions are done.

    Raises:
        InputError: no question is in the half, or the gain is unknown.
    """
    if gain not in GAINS:
        raise InputError(f"{gain!r} is not a gain.", next_step=f"Use one of {', '.join(GAINS)}.")
    asked = [question for question in questions if half in (None, question.half)]
    if not asked:
        raise InputError(
            f"No question falls into the {half} half.",
            next_step="Ask both halves, or add questions.",
            code="no_questions",
        )
    judged = []
    for number, question in enumerate(asked, 1):
        judged.append(judge(question, searcher(question), gain=gain, cut=cut))
        if seen is not None:
            seen(number, len(asked))
    return Evaluation(scope, gain, half, figures(judged), tuple(judged))


def figures(judged: Sequence[Judged]) -> dict[str, Figure]:
    """Figures over all, then by language and by slice; of the two only where there are several."""
    found = {ALL: figure(judged)}
    for name, of in _groupings():
        values = sorted({of(item) for item in judged})
        for value in values if len(values) > 1 else ():
            found[f"{name}:{value}"] = figure([item for item in judged if of(item) == value])
    return found


def figure(judged: Sequence[Judged]) -> Figure:
    """Figures of one group."""
    answerable = [item for item in judged if item.answerable]
    others = [item for item in judged if not item.answerable]
    values = {name: [of(item) for item in answerable] for name, of in MEASURES.items()}
    right = [float(item.nothing) for item in answerable if item.right]
    if right:
        values["lost"] = right
    return Figure(
        questions=len(answerable),
        means={name: sum(given) / len(given) for name, given in values.items() if given},
        intervals={
            name: found for name, given in values.items() if (found := interval(given)) is not None
        },
        unanswerable=len(others),
        nothing=sum(item.nothing for item in others) / len(others) if others else None,
    )


def _by_rank(cut: int) -> Callable[[Judged], float]:
    return lambda item: float(item.first is not None and item.first <= cut)


MEASURES: Mapping[str, Callable[[Judged], float]] = {
    "ndcg_10": lambda item: item.ndcg,
    "r_1": _by_rank(1),
    "r_5": _by_rank(5),
    "r_100": _by_rank(POOL),
    "mrr": lambda item: 1 / item.first if item.first else 0.0,
    "recall_100": lambda item: item.recall,
}


def _groupings() -> Iterator[tuple[str, Callable[[Judged], str]]]:
    yield "language", lambda item: item.language
    yield "slice", lambda item: item.slice
