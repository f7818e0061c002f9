"""Do new passages crowd the answers to known questions? An alarm against poisoned documents.

Belongs here: canary questions, counting, the bound. What does not: removing (`removal`), showing.

A scope is asked what it could answer before: headings of older passages, and its labelled
questions. Two things are not what honest documents do, and are what planted ones are written for
(Zou et al., "PoisonedRAG", USENIX Security 2025, plant five texts for a question): new passages
fill most of one list (`crowd`), or one new passage stands in many lists (`hub`). Both are held
against chance: the binomial tail of as many new passages as the scope has got, divided by the
number of tests (Bonferroni). Where half a scope is new, nothing can be told, and nothing is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from math import comb
from pathlib import Path
from typing import Any, Literal

from kb_resources.evaluate import read_questions
from kb_resources.model import DocumentKey, Principal
from kb_resources.stages import evaluation
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.outward import passages_may_leave
from kb_resources.stages.swap_quality import question_of
from kb_resources.store import crowding, documents, generations
from kb_resources.store.crowding import NewPassage

QUESTIONS = 64
DEPTH = 5
LEAST = 3
LEAST_SHARE = 0.1
CHANCE = 0.001
"""How often a scope without anything planted may raise an alarm, by the binomial model."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something new that stands where it should not.

    Attributes:
        kind: `crowd`, new passages fill a list; `hub`, one new passage is in many lists.
        question: the canary: document and passage it is made of, or file and labelled question;
            empty for a hub.
        documents: ids of the documents whose passages these are.
        origins: where they came from.
        count: new passages in the list, or lists with the passage.
        of: length of the list, or number of lists.
    """

    kind: Literal["crowd", "hub"]
    question: str
    documents: tuple[str, ...]
    origins: tuple[str, ...]
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Crowding:
    """What was asked of a scope, and what stood out."""

    scope: str
    questions: int
    new_passages: int
    passages: int
    alarms: tuple[Alarm, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Canary:
    text: str
    name: str
    document: str


_Place = tuple[str, str]


def measure(
    caps: Capabilities, scope: str, *, since: datetime, folder: Path | None = None
) -> Crowding:
    """Ask a scope its canary questions and look for what came since.

    Args:
        caps: of the line.
        scope: its name.
        since: aware UTC; versions made from then on are new.
        folder: of files with labelled questions (`<scope>.jsonl`), asked as well.

    Raises:
        NotFound: no such scope.
        UnavailableError: the scope's model is away.
    """
    now = caps.clock()
    with caps.database.transaction("pipeline") as conn:
        scope_id = documents.get_scope(conn, scope).scope_id
        new = crowding.new_passages(conn, scope_id, since=since, now=now)
        total = crowding.found_passages(conn, scope_id, now=now)
        held = generations.of_scope(conn, scope)
        sampled = crowding.canaries(conn, scope_id, since=since, now=now, size=QUESTIONS)
    embedder = caps.embedder_of(held.live) if held else None
    asked = [
        _Canary(question_of(each), f"{each.document_id} {each.passage_id}", each.document_id)
        for each in sampled
        if embedder is None
        or passages_may_leave(
            caps, DocumentKey(scope, each.document_id), each.version, [each], embedder
        )
    ]
    asked += _labelled(scope, folder)
    lists = _lists(caps, scope, asked) if new else []
    return Crowding(
        scope, len(asked), len(new), total, judge(asked_names(asked), lists, new, total)
    )


def asked_names(asked: Sequence[_Canary]) -> list[tuple[str, str]]:
    """Name of each question, and the document it is made of."""
    return [(each.name, each.document) for each in asked]


def judge(
    asked: Sequence[tuple[str, str]],
    lists: Sequence[Sequence[_Place]],
    new: Sequence[NewPassage],
    total: int,
) -> tuple[Alarm, ...]:
    """Alarms for lists of (document, passage), best first.

    Args:
        asked: name of each question and the document it is made of, whose own news do not count.
        lists: what each question found.
        new: the passages that came since.
        total: passages of the scope.
    """
    if not new or not lists:
        return ()
    share = min(1.0, len(new) / max(total, 1))
    by_place = {(each.document_id, each.passage_id): each for each in new}
    alarms: list[Alarm] = []
    seen: Counter[_Place] = Counter()
    for (name, document), found in zip(asked, lists, strict=True):
        strange = [place for place in found if place in by_place and place[0] != document]
        seen.update(set(strange))
        if len(strange) >= LEAST and _tail(len(found), share, len(strange)) < CHANCE / len(lists):
            alarms.append(_alarm("crowd", name, [by_place[p] for p in strange], len(found)))
    chance = min(1.0, DEPTH / max(total, 1))
    for place, count in seen.most_common():
        enough = count >= LEAST and count > LEAST_SHARE * len(lists)
        if enough and _tail(len(lists), chance, count) < CHANCE / len(new):
            alarms.append(_alarm("hub", "", [by_place[place]], len(lists), count))
    return tuple(alarms)


def _alarm(
    kind: Literal["crowd", "hub"],
    question: str,
    new: Sequence[NewPassage],
    of: int,
    count: int | None = None,
) -> Alarm:
    return Alarm(
        kind,
        question,
        tuple(sorted({each.document_id for each in new})),
        tuple(sorted({each.origin for each in new})),
        len(new) if count is None else count,
        of,
    )


def _tail(n: int, p: float, least: int) -> float:
    """Probability of `least` or more successes in `n` tries."""
    return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(least, n + 1))


def _labelled(scope: str, folder: Path | None) -> list[_Canary]:
    files = evaluation.question_sets(folder).get(scope, ()) if folder else ()
    return [
        _Canary(question.text, f"{file.name}/{question.id}", "")
        for file in files
        for question in read_questions(file)
    ]


def _lists(caps: Capabilities, scope: str, asked: Sequence[_Canary]) -> list[list[_Place]]:
    """What a reader who may read everything would find, without a log."""
    retriever = evaluation.retriever_of(caps)
    who = Principal(caps.actor, roles=frozenset({"system"}))
    found = (
        retriever.search(each.text, principal=who, scope=scope, mode="hybrid", k=DEPTH)
        for each in asked
    )
    return [[(hit.document_id, hit.passage_id) for hit in result.hits] for result in found]
