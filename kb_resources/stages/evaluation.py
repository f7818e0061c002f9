"""Evaluations of a scope or of a labelled set: asked, judged and kept, free of Dagster.

Belongs here: the use cases, from questions to a kept run. What does not: judging (`evaluate`),
printing. The pipeline's role searches, so that whoever may ingest may measure; the statement and
its filters are the reader's. No retrieval log: the kept run says who asked what, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kb_resources import evaluate
from kb_resources.answer.disclosure import Destination, Part, disclose_to
from kb_resources.embed.remote import RemoteEmbedder
from kb_resources.errors import InputError
from kb_resources.evaluate import Evaluation, Half, Question, keeping
from kb_resources.evaluate.beir import read_set
from kb_resources.evaluate.keeping import KeptRun
from kb_resources.evaluate.score import Gain
from kb_resources.evaluate.searching import searcher, stale_labels
from kb_resources.model import Principal, content_hash
from kb_resources.retrieve import Retriever
from kb_resources.retrieve.log import new_correlation_id
from kb_resources.stages import scratch
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.line import Line
from kb_resources.stages.scratch import Loaded
from kb_resources.store import documents, evaluations, generations, logs
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database

_SHOWN = 3
_NAME = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a run is to be done.

    Attributes:
        name: of the question file or set.
        actor: who runs it.
        half: `dev`, `test` or None for both.
        gain: what a label is worth.
        mode: `hybrid`, `text` or `vector`.
        words: how many of its words a passage must hold: `any`, `all` or `all_first`.
        audiences: names held by who asks; None: everything in the scope is found.
    """

    name: str
    actor: str
    half: Half | None = None
    gain: Gain = "binary"
    mode: str = "hybrid"
    words: str = "any"
    audiences: tuple[str, ...] | None = None

    @property
    def principal(self) -> Principal:
        """Who asks the questions."""
        if self.audiences is None:
            return Principal(self.actor, roles=frozenset({"system"}))
        return Principal(self.actor, audiences=frozenset(self.audiences))


@dataclass(frozen=True, slots=True)
class Ran:
    """A run: what is kept of it, its figures and, of a labelled set, what became of its texts."""

    kept: KeptRun
    made: Evaluation
    loaded: Loaded | None = None


Progress = Callable[[str, int], None]
"""Told what is being done and how much of it is through."""


def run_scope(
    caps: Capabilities,
    scope: str,
    questions: Sequence[Question],
    wanted: Wanted,
    *,
    allow_stale: bool = False,
    seen: Progress | None = None,
) -> Ran:
    """Ask a scope labelled questions and keep the run.

    Raises:
        NotFound: no such scope.
        InputError: labels name what is not found in the scope (`stale_labels`); by line.
    """
    with caps.database.transaction("pipeline") as conn:
        documents.get_scope(conn, scope)
        stale = [] if allow_stale else stale_labels(conn, scope, questions)
    if stale:
        more = f" And {len(stale) - _SHOWN} more." if len(stale) > _SHOWN else ""
        raise InputError(
            f"{' '.join(stale[:_SHOWN])}{more}",
            next_step="Correct the labels, or ask all the same with --allow-stale.",
            code="stale_labels",
        )
    return _run(caps, scope, questions, wanted, kept_under=scope, seen=seen)


def run_set(
    line: Line,
    folder: Path,
    wanted: Wanted,
    *,
    min_grade: int = 1,
    seen: Progress | None = None,
) -> Ran:
    """Load a set in BEIR's layout into a scope of its own, ask, keep the run, drop the scope.

    Raises:
        InputError: a file of the set is wrong (`bad_set`); by line.
    """
    one = read_set(folder, min_grade=min_grade)
    database = line.capabilities.database
    with scratch.scratch_scope(database, actor=wanted.actor) as scope:
        told = None if seen is None else lambda count: seen("loaded", count)
        loaded = scratch.load(line, scope, one.corpus(), seen=told)
        ran = _run(line.capabilities, scope, one.questions, wanted, kept_under=None, seen=seen)
    return Ran(ran.kept, ran.made, loaded)


def retriever_of(
    caps: Capabilities, gate: Callable[..., bool] | None = None, *, model_id: str | None = None
) -> Retriever:
    """A retriever in the pipeline's role and by the line's clock, without a log.

    Args:
        caps: of the line.
        gate: whether a question may go to the model; None: always.
        model_id: the generation that is searched, whatever is live; None: the live one.
    """
    return Retriever(
        _InThePipelinesRole(caps.database),
        embedder=caps.embedder if model_id is None else lambda: caps.embedder_of(model_id),
        other_models=caps.embedder_of if model_id is None else None,
        clock=caps.clock,
        gate=gate,
    )


def _run(
    caps: Capabilities,
    scope: str,
    questions: Sequence[Question],
    wanted: Wanted,
    *,
    kept_under: str | None,
    seen: Progress | None,
) -> Ran:
    started = time.perf_counter()
    digest = keeping.digest_of(questions)
    asked = [question for question in questions if wanted.half in (None, question.half)]
    model = _live_model(caps, scope)
    may = wanted.mode == "text" or may_leave(
        caps, scope, asked, wanted.actor, caps.embedder_of(model), digest
    )
    ask = searcher(
        retriever_of(caps, lambda *_, **__: may),
        scope,
        wanted.principal,
        mode=wanted.mode,
        words=wanted.words,
    )
    told = None if seen is None else lambda count, _of: seen("asked", count)
    made = evaluate.run(scope, questions, ask, half=wanted.half, gain=wanted.gain, seen=told)
    config = {
        "mode": wanted.mode if may else "text",
        "words": wanted.words,
        "model": model,
        "analyzer": caps.versions.analyzer,
        "chunker": caps.versions.chunker,
        "audiences": None if wanted.audiences is None else sorted(wanted.audiences),
        "pool": evaluate.POOL,
        "cut": evaluate.CUT,
    }
    with caps.database.transaction("pipeline") as conn:
        run_id = keeping.keep(
            conn,
            made,
            scope=kept_under,
            name=wanted.name[:_NAME],
            questions_digest=digest,
            config=config,
            actor=wanted.actor,
            duration_s=time.perf_counter() - started,
        )
        return Ran(keeping.kept(evaluations.get(conn, run_id)), made)


def _live_model(caps: Capabilities, scope: str) -> str:
    with caps.database.transaction("pipeline") as conn:
        held = generations.of_scope(conn, scope)
    return held.live if held else caps.versions.model_id


def may_leave(
    caps: Capabilities,
    scope: str,
    questions: Sequence[Question],
    actor: str,
    embedder: object,
    digest: str,
) -> bool:
    """Whether the questions may go to an embedding model; written down once, before they do."""
    if not isinstance(embedder, RemoteEmbedder):
        return True
    with caps.database.transaction("pipeline") as conn:
        held = logs.scope_classes(conn, [scope]).get(scope, "confidential")
        parts = [
            Part("question", held, content_hash(f"{digest}/{one.id}"), len(one.text), {})
            for one in questions
        ]
        return disclose_to(
            conn,
            parts,
            Destination(embedder.address, embedder.model_id, caps.embed_hosting),
            purpose="embed_question",
            scopes=[scope],
            actor=actor,
            correlation_id=new_correlation_id(),
        )


@dataclass(frozen=True, slots=True)
class _InThePipelinesRole:
    """The reading statements as the pipeline's role, which sees every scope."""

    database: Database

    def transaction(
        self,
        role: Literal["app"],  # noqa: ARG002
        scope: str | Sequence[str] | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[Conn]:
        return self.database.transaction("pipeline")


def question_sets(folder: Path) -> dict[str, list[Path]]:
    """Question files of a folder by scope: `<scope>.jsonl` and `<scope>.<name>.jsonl`."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        found.setdefault(file.name.split(".", 1)[0], []).append(file)
    return found


def to_json(ran: Ran) -> dict[str, Any]:
    """A run with its questions, JSON-serialisable."""
    value = ran.kept.to_json() | ran.made.to_json() | {"scope": ran.kept.scope}
    if ran.loaded is not None:
        value["loaded"] = {
            "documents": ran.loaded.documents,
            "indexed": ran.loaded.indexed,
            "held": [list(item) for item in ran.loaded.held],
        }
    return value
