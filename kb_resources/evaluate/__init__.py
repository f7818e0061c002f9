"""Measuring search: labelled questions, rankings judged, runs compared.

Belongs here: what a question file is, metrics, their intervals, whether one run is worse than
another, loading labelled sets. What does not: ranking (`retrieve`), keeping runs (`store`).
Measures: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002.
"""

from kb_resources.evaluate.compare import Comparison, Difference, Verdict, compare, not_worse
from kb_resources.evaluate.evaluation import CUT, POOL, Evaluation, Figure, run
from kb_resources.evaluate.questions import (
    SLICES,
    Half,
    Label,
    Question,
    half_of,
    parse_questions,
    read_questions,
)
from kb_resources.evaluate.score import Found, Judged, Place, Searcher

__all__ = [
    "CUT",
    "POOL",
    "SLICES",
    "Comparison",
    "Difference",
    "Evaluation",
    "Figure",
    "Found",
    "Half",
    "Judged",
    "Label",
    "Place",
    "Question",
    "Searcher",
    "Verdict",
    "compare",
    "half_of",
    "not_worse",
    "parse_questions",
    "read_questions",
    "run",
]
