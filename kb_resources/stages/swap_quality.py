"""Is a shadow generation as good as the live one? Measured before a swap.

Belongs here: questions, both answers side by side, and the thresholds. What does not: swapping.

Three numbers, over questions of the scope's own. `recall` is the share of questions whose passage
a search by vectors alone finds among ten: known-item search, as in TREC's known-item task (Voorhees
and Harman, "TREC: Experiment and Evaluation in Information Retrieval", 2005, ch. 4). It may fall by
MAX_LOSS, the bound that requirement B-19 sets for a re-embedding. `overlap` is the mean share of
ten passages that both lists have (Webber, Moffat and Zobel, "A similarity measure for indefinite
rankings", 2010, call it average overlap at one depth). Two good models agree on far less than all
of it: docs/reembedding.md has what was measured. MIN_OVERLAP only refuses what is not a model of
these texts at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb_resources.errors import IntegrityError, UnavailableError
from kb_resources.evaluate import keeping, not_worse, read_questions, run
from kb_resources.evaluate.searching import searcher
from kb_resources.model import DocumentKey, Principal
from kb_resources.stages import evaluation
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.outward import passages_may_leave
from kb_resources.store import generations
from kb_resources.store import search as statements
from kb_resources.store.generations import Generation, SampledPassage
from kb_resources.store.search import SearchQuery

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUESTIONS = 64
DEPTH = 10
MIN_OVERLAP = 0.1
MAX_LOSS = 0.01
_WORDS = 12


@dataclass(frozen=True, slots=True)
class Quality:
    """The shadow beside the live generation.

    Attributes:
        scope: its name.
        live: identity of the model it is searched by.
        shadow: identity of the other one.
        questions: how many were asked.
        asked: `headings` of the scope's passages.
        overlap: mean share of ten passages that both lists have, 0 to 1.
        live_recall: share of questions whose passage the live generation finds among ten.
        recall: the same of the shadow.
        problems: why a swap is refused, one sentence each; empty where it is not.
        labelled: how many labelled questions of the scope's own were asked as well.
        live_ndcg: mean nDCG@10 of the live generation over them; None without any.
        ndcg: the same of the shadow.
        live_here: whether the live model could be asked at all. Where it is gone its vectors are of
            no more use, and there is nothing to compare with: overlap and live recall say nothing.
    """

    scope: str
    live: str
    shadow: str
    questions: int
    asked: str
    overlap: float
    live_recall: float
    recall: float
    problems: tuple[str, ...]
    labelled: int = 0
    live_ndcg: float | None = None
    ndcg: float | None = None
    live_here: bool = True

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return asdict(self) | {"problems": list(self.problems), "holds": not self.problems}


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    passage: tuple[str, str]  # document and passage


def measure(caps: Capabilities, held: Generation, folder: Path | None = None) -> Quality:
    """Ask both generations the same questions.

    Args:
        caps: of the line.
        held: a scope with a shadow.
        folder: of files with labelled questions, as `kb_scopes/evaluation` reads them; where it
            has some of the scope, both generations answer them as searches do, and the shadow may
            not be worse by the rule that holds for accepted runs (`evaluate.not_worse`).

    Raises:
        UnavailableError: the shadow's model is away.
    """
    with caps.database.transaction("pipeline") as conn:
        sampled = generations.sample(conn, held.scope_id, QUESTIONS)
    models = [held.beside or "", *([held.live] if _here(caps, held.live) else [])]
    allowed = [each for each in sampled if _may_be_asked(caps, held, each, models)]
    questions = [
        _Question(question_of(each), (each.document_id, each.passage_id)) for each in allowed
    ]
    lists = [
        _lists(caps, held, questions, model_id, key or 0)
        for model_id, key in zip(models, (held.beside_key, held.live_key), strict=False)
    ]
    live_here = len(lists) == 2
    overlap, live_recall, recall = compare(
        [question.passage for question in questions], lists[-1], lists[0]
    )
    labelled = _labelled(caps, held, folder) if live_here and folder else None
    problems = judge(len(questions), overlap, live_recall, recall)
    return Quality(
        scope=held.scope,
        live=held.live,
        shadow=held.beside or "",
        questions=len(questions),
        asked="headings",
        overlap=overlap,
        live_recall=live_recall,
        recall=recall,
        problems=problems if labelled is None else (*problems, *labelled.problems),
        labelled=labelled.questions if labelled else 0,
        live_ndcg=labelled.live_ndcg if labelled else None,
        ndcg=labelled.ndcg if labelled else None,
        live_here=live_here,
    )


@dataclass(frozen=True, slots=True)
class _Labelled:
    questions: int
    live_ndcg: float
    ndcg: float
    problems: tuple[str, ...]


def _labelled(caps: Capabilities, held: Generation, folder: Path) -> _Labelled | None:
    """Both generations over the scope's labelled questions; None where it has fewer than two."""
    questions = [
        replace(question, id=f"{file.name}/{question.id}")
        for file in evaluation.question_sets(folder).get(held.scope, ())
        for question in read_questions(file)
    ]
    if sum(bool(question.labels) for question in questions) < 2:
        return None
    digest = keeping.digest_of(questions)
    who = Principal(caps.actor, roles=frozenset({"system"}))
    runs = []
    for model_id in (held.live, held.beside or ""):
        may = evaluation.may_leave(
            caps, held.scope, questions, caps.actor, caps.embedder_of(model_id), digest
        )
        retriever = evaluation.retriever_of(
            caps, lambda *_, _may=may, **__: _may, model_id=model_id
        )
        runs.append(run(held.scope, questions, searcher(retriever, held.scope, who)))
    verdict = not_worse(runs[0].judged, runs[1].judged)
    ndcg = [made.overall.means["ndcg_10"] for made in runs]
    problems = () if verdict.passed else (f"labelled questions: {verdict.reason}",)
    return _Labelled(len(questions), ndcg[0], ndcg[1], problems)


def _here(caps: Capabilities, model_id: str) -> bool:
    """Whether a model can be asked; one behind an endpoint may have been replaced there."""
    try:
        caps.embedder_of(model_id)
    except (UnavailableError, IntegrityError):
        return False
    return True


def question_of(passage: SampledPassage) -> str:
    """What somebody might ask whom the passage answers: its heading and how it begins."""
    heading = passage.heading_path[-1] if passage.heading_path else passage.title or ""
    return " ".join([heading, *passage.text.split()[:_WORDS]]).strip() or passage.text


def compare(
    wanted: Sequence[tuple[str, str]],
    live: Sequence[Sequence[tuple[str, str]]],
    shadow: Sequence[Sequence[tuple[str, str]]],
) -> tuple[float, float, float]:
    """Overlap, recall of the live lists, recall of the shadow's; 1 each without questions."""
    if not wanted:
        return 1.0, 1.0, 1.0
    shares = [
        len(set(a) & set(b)) / max(len(set(a)), len(set(b)), 1)
        for a, b in zip(live, shadow, strict=True)
    ]
    found = [
        sum(passage in row for passage, row in zip(wanted, lists, strict=True)) / len(wanted)
        for lists in (live, shadow)
    ]
    return sum(shares) / len(shares), found[0], found[1]


def judge(questions: int, overlap: float, live_recall: float, recall: float) -> tuple[str, ...]:
    """Why a swap is refused; nothing is judged where nothing could be asked."""
    if not questions:
        return ()
    problems = []
    if overlap < MIN_OVERLAP:
        problems.append(
            f"the ten best passages agree to {overlap:.0%}, at least {MIN_OVERLAP:.0%} are needed"
        )
    # One question more or less must not decide where there are few.
    if recall < live_recall - max(MAX_LOSS, 1 / questions) - 1e-9:
        problems.append(
            f"it finds {recall:.0%} of {questions} known passages among ten, the live one "
            f"{live_recall:.0%}"
        )
    return tuple(problems)


def _may_be_asked(
    caps: Capabilities, held: Generation, passage: SampledPassage, models: Sequence[str]
) -> bool:
    """A question made of a passage goes where the passage may go."""
    key = DocumentKey(held.scope, passage.document_id)
    return all(
        passages_may_leave(caps, key, passage.version, [passage], caps.embedder_of(model_id))
        for model_id in models
    )


def _lists(
    caps: Capabilities,
    held: Generation,
    questions: Sequence[_Question],
    model_id: str,
    model_key: int,
) -> list[list[tuple[str, str]]]:
    """Document and passage of the ten nearest passages to each question, found now."""
    if not questions:
        return []
    asked = caps.embedder_of(model_id).embed([question.text for question in questions], "query")
    with caps.database.transaction("pipeline") as conn:
        return [
            [
                (str(row["document_id"]), str(row["passage_id"]))
                for row in statements.run(conn, _query(caps, held, vector, model_key))
            ]
            for vector in asked
        ]


def _query(
    caps: Capabilities, held: Generation, vector: NDArray[np.float32], model_key: int
) -> SearchQuery:
    return SearchQuery(
        scope_ids=[held.scope_id],
        lexemes={},
        vector=vector,
        model_key=model_key,
        audiences=None,
        as_of=caps.clock(),
        historical=False,
        k=DEPTH,
        candidates=DEPTH,
    )
