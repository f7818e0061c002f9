"""Evaluations: how well search found what labelled questions ask for.

Belongs here: reading kept runs. What does not: running them, which takes the pipeline (`kb eval`,
the asset `kb_scopes/evaluation`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, Field

from kb.http.guard import Editor
from kb.http.schemas import Name
from kb.http.services import Services, ServicesDep
from kb_resources.evaluate import keeping
from kb_resources.store import documents, evaluations

router = APIRouter(prefix="/api/v1/evaluations", tags=["evaluations"])

RunId = Annotated[
    str, Path(pattern="^[0-9a-f]{1,16}$", description="Or enough of its first digits.")
]


class FigureOut(BaseModel):
    """Means over one group of questions, with 95 % bootstrap intervals."""

    questions: int
    means: dict[str, float]
    intervals: dict[str, list[float]]
    unanswerable: int
    nothing: float | None


class RunOut(BaseModel):
    """A kept run; `figures` by group: all, language:de, slice:exact."""

    run_id: str
    scope: str | None
    name: str
    questions_digest: str
    half: str | None
    gain: str
    config: dict[str, Any]
    figures: dict[str, FigureOut]
    ndcg_10: float | None
    actor: str
    at: datetime
    duration_s: float
    accepted_at: datetime | None
    accepted_by: str | None


class QuestionOut(BaseModel):
    """How one question went; `first` is the rank of the first answer, null where none came."""

    id: str
    language: str
    slice: str
    answerable: bool
    ndcg: float
    first: int | None
    recall: float
    nothing: bool
    relevance: float | None
    top: list[str] | None = Field(
        None, description="First documents; for those alone who may read every document."
    )


class RunWithQuestions(RunOut):
    """A kept run with a row per question."""

    questions: list[QuestionOut]


class Runs(BaseModel):
    """Runs, newest first."""

    items: list[RunOut]


@router.get("", response_model=Runs)
async def list_runs(
    identity: Editor,
    services: ServicesDep,
    scope: Annotated[Name, Query(description="Scope name.")],
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[AwareDatetime | None, Query(description="Only older ones.")] = None,
) -> Any:
    """Kept runs of a scope, newest first."""
    name = identity.use_scope(scope)
    return await services.work.run(_list, services, name, limit, before)


@router.get("/{scope}/{run_id}", response_model=RunWithQuestions)
async def show_run(
    scope: Annotated[str, Path(max_length=63)],
    run_id: RunId,
    identity: Editor,
    services: ServicesDep,
) -> Any:
    """One run with its questions."""
    run = await services.work.run(_show, services, identity.use_scope(scope), run_id)
    if not identity.reads_everything:
        for question in run["questions"]:
            del question["top"]
    return run


def _list(
    services: Services, scope: str, limit: int, before: datetime | None
) -> dict[str, list[dict[str, Any]]]:
    with services.database.transaction("app", scope) as conn:
        documents.get_scope(conn, scope)
        found = evaluations.recent(conn, scope, limit=limit, before=before)
    return {"items": [keeping.kept(row).to_json() for row in found]}


def _show(services: Services, scope: str, run_id: str) -> dict[str, Any]:
    with services.database.transaction("app", scope) as conn:
        documents.get_scope(conn, scope)
        run = keeping.kept(evaluations.get(conn, run_id))
        questions = evaluations.questions(conn, run.run_id)
    return run.to_json() | {"questions": questions}
