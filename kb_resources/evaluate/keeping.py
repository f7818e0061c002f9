"""Runs to rows and back: what of an evaluation is kept, and the last one that was accepted.

Belongs here: the shape of a kept run. What does not: SQL (`store.evaluations`), judging. Kept are
ids, ranks and figures; the text of a question stays in its file.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from kb_resources.evaluate.evaluation import Evaluation
from kb_resources.evaluate.questions import Question
from kb_resources.evaluate.score import Judged
from kb_resources.model import content_hash
from kb_resources.store import evaluations
from kb_resources.store.documents import Conn


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A stored run without its questions.

    Attributes:
        run_id: 16 hex digits.
        scope: what was searched; None: a labelled set loaded for the run alone.
        name: of the question file or set.
        questions_digest: of questions and labels.
        half: which half was asked, or None.
        gain: `binary` or `graded`.
        config: what was measured.
        figures: as `Figure.to_json`, by group.
        ndcg_10: over all answerable questions, None without any.
        actor: who ran it.
        at: when it ended, aware.
        duration_s: wall time.
        accepted_at: when it was accepted, or None.
        accepted_by: by whom, or None.
    """

    run_id: str
    scope: str | None
    name: str
    questions_digest: str
    half: str | None
    gain: str
    config: Mapping[str, Any]
    figures: Mapping[str, Any]
    ndcg_10: float | None
    actor: str
    at: datetime
    duration_s: float
    accepted_at: datetime | None
    accepted_by: str | None

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601."""
        value = {item.name: getattr(self, item.name) for item in fields(self)}
        return value | {
            "at": self.at.isoformat(),
            "accepted_at": self.accepted_at and self.accepted_at.isoformat(),
        }


def digest_of(questions: Sequence[Question]) -> str:
    """SHA-256 hex of questions and labels: equal for equal sets, whatever their file looks like."""
    return content_hash(
        "\x1e".join(repr((q.id, q.text, q.labels)) for q in sorted(questions, key=lambda q: q.id))
    )


def keep(
    conn: Conn,
    made: Evaluation,
    *,
    scope: str | None,
    name: str,
    questions_digest: str,
    config: Mapping[str, Any],
    actor: str,
    duration_s: float,
) -> str:
    """Store a run with its questions; returns its id."""
    run_id = secrets.token_hex(8)
    evaluations.add(
        conn,
        {
            "run_id": run_id,
            "scope": scope,
            "name": name,
            "questions_digest": questions_digest,
            "half": made.half,
            "gain": made.gain,
            "config": dict(config),
            "figures": {group: figure.to_json() for group, figure in made.figures.items()},
            "ndcg_10": made.overall.means.get("ndcg_10"),
            "actor": actor,
            "duration_s": duration_s,
        },
        [
            {
                "question": item.id,
                **{field: getattr(item, field) for field in _COLUMNS},
                "top": list(item.top),
            }
            for item in made.judged
        ],
    )
    return run_id


def kept(row: Mapping[str, Any]) -> KeptRun:
    """A run from its row."""
    return KeptRun(**row)


def judged(conn: Conn, run_id: str) -> tuple[Judged, ...]:
    """The questions of a run as they were judged."""
    rows = evaluations.questions(conn, run_id)
    return tuple(Judged(**{**row, "top": tuple(row["top"])}) for row in rows)


def accepted(conn: Conn, scope: str | None, name: str) -> KeptRun | None:
    """The run of both halves of these questions that was accepted last."""
    found = evaluations.recent(conn, scope, name=name, accepted=True, whole=True, limit=1)
    return kept(found[0]) if found else None


_COLUMNS = ("language", "slice", "answerable", "ndcg", "first", "recall", "nothing", "relevance")
