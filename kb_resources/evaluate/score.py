"""One question's ranking judged against its labels.

Belongs here: which places answer, ranks, gains. What does not: averages (`evaluation`). Formulas:
nDCG with gain over log2(rank + 1), Järvelin and Kekäläinen 2002; reciprocal rank, Voorhees 1999.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kb_resources.evaluate.questions import Label, Question
from kb_resources.retrieve.outline import node_id

Gain = Literal["binary", "graded"]
GAINS: tuple[Gain, ...] = ("binary", "graded")
_KEPT = 3
"""Documents at the top that a judged question names."""


class Place(Protocol):
    """Where a hit stands; `retrieve.Hit` is one."""

    @property
    def document_id(self) -> str:
        """The document."""
        ...

    @property
    def source(self) -> str:
        """Path relative to its root, or URL."""
        ...

    @property
    def version(self) -> int:
        """Number within the document."""
        ...

    @property
    def heading_path(self) -> tuple[str, ...]:
        """Headings above, from the root down."""
        ...

    @property
    def byte_start(self) -> int:
        """In the body."""
        ...

    @property
    def byte_end(self) -> int:
        """Exclusive."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """What a searcher gave for one question.

    Attributes:
        places: best first.
        nothing: whether it said that none of them is relevant.
        relevance: its estimate that the first is, 0..1; None where it makes none.
    """

    places: Sequence[Place]
    nothing: bool = False
    relevance: float | None = None


Searcher = Callable[[Question], Found]
"""Searches one scope for one asker; the scope and everything else is its own affair."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question's figures.

    Attributes:
        id: the question's.
        language: the question's.
        slice: the question's.
        answerable: whether anything is labelled.
        ndcg: at the cut; 0 for an unanswerable question.
        first: rank of the first place that answers, 1-based; None: not in the pool.
        recall: share of its labels in the pool; 0 for an unanswerable question.
        nothing: whether it was answered with nothing.
        relevance: the searcher's estimate, or None.
        top: documents of the first places.
    """

    id: str
    language: str
    slice: str
    answerable: bool
    ndcg: float
    first: int | None
    recall: float
    nothing: bool
    relevance: float | None
    top: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Whether the first place answers."""
        return self.first == 1


def judge(question: Question, found: Found, *, gain: Gain, cut: int) -> Judged:
    """Judge one ranking.

    A label counts once, at the first place that answers it. Places that only repeat an answered
    label, or an unlabelled place of the same document (section, where sections are labelled),
    take no rank: a finer chunker neither gains nor loses by giving more of the same.
    """
    gains, ranks = _ranks(question, found.places)
    ideal = sorted((_gain(label.grade, gain) for label in question.labels), reverse=True)
    reached = sum(
        sum(_gain(grade, gain) for grade in grades) / math.log2(rank + 1)
        for rank, grades in zip(ranks, gains, strict=True)
        if rank <= cut
    )
    best = sum(value / math.log2(rank + 1) for rank, value in enumerate(ideal[:cut], 1))
    return Judged(
        id=question.id,
        language=question.language,
        slice=question.slice,
        answerable=bool(question.labels),
        ndcg=min(1.0, reached / best) if best else 0.0,
        first=ranks[0] if ranks else None,
        recall=sum(map(len, gains)) / len(question.labels) if question.labels else 0.0,
        nothing=found.nothing,
        relevance=found.relevance,
        top=tuple(dict.fromkeys(place.document_id for place in found.places))[:_KEPT],
    )


def answers(label: Label, place: Place) -> bool:
    """Whether a place is what a label names."""
    if label.document not in (place.document_id, place.source):
        return False
    if label.section is not None and place.heading_path[: len(label.section)] != label.section:
        return False
    if label.node is not None and label.node not in (
        node_id(place.heading_path[:depth]) for depth in range(len(place.heading_path) + 1)
    ):
        return False
    if label.span is None:
        return True
    same = label.version is None or label.version == place.version
    return same and place.byte_start < label.span[1] and label.span[0] < place.byte_end


def _ranks(question: Question, places: Sequence[Place]) -> tuple[list[list[int]], list[int]]:
    """Grades newly answered at a place, and the rank of that place, best first."""
    by_document = all(label.whole_document for label in question.labels)
    waiting = dict(enumerate(question.labels))
    seen: set[tuple[str, ...]] = set()
    gains: list[list[int]] = []
    ranks: list[int] = []
    rank = 0
    for place in places:
        hit = [number for number, label in waiting.items() if answers(label, place)]
        if hit:
            rank += 1
            gains.append([waiting.pop(number).grade for number in hit])
            ranks.append(rank)
            seen.add(_name(place, by_document))
        elif not any(answers(label, place) for label in question.labels):
            name = _name(place, by_document)
            rank += name not in seen
            seen.add(name)
    return gains, ranks


def _name(place: Place, by_document: bool) -> tuple[str, ...]:
    return (place.document_id, *(() if by_document else place.heading_path))


def _gain(grade: int, gain: Gain) -> float:
    return 1.0 if gain == "binary" else float(2**grade - 1)
