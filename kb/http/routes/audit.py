"""The logs: from an answer to bytes, and what a logged search would find today.

Belongs here: reading the logs over HTTP, for administrators. What does not: writing them, walking
them (`kb_resources.answer`). The logs hold no question, so whoever replays one supplies its text.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from kb.http.guard import Admin
from kb.http.routes.documents import ScopeName
from kb.http.schemas import Input, Instant, Page, Question
from kb.http.services import ServicesDep

router = APIRouter(prefix="/api/v1/audit", tags=["audit"])

CorrelationId = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]


class LoggedSearch(BaseModel):
    """A search as the log has it; no word of the question."""

    correlation_id: str
    at: str
    actor: str
    mode: str
    hits: int


class SourceOut(BaseModel):
    """A passage that was reached or cited, and what stands behind it now."""

    scope: str
    document_id: str
    version: int
    passage_id: str
    digest: str
    cited: bool
    ranks: list[int]
    known: bool
    is_slice: bool | None
    bytes_hold: bool | None
    accounted_for: bool


class TraceOut(BaseModel):
    """Everything under one correlation id."""

    correlation_id: str
    retrievals: list[dict[str, Any]]
    disclosures: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    sources: list[SourceOut]


class ReplayRequest(Input):
    """The question, word for word."""

    question: Question


class ReplayedOut(BaseModel):
    """A passage with its rank in the log, as of then, and now."""

    scope: str
    document_id: str
    version: int
    passage_id: str
    rank_logged: int | None
    rank_then: int | None
    rank_now: int | None
    cause: Literal["document", "rules", "audiences", "model", "analyzer", "neighbours"] | None
    why: str


class ReplayOut(BaseModel):
    """A logged search run again; `erased` are ranks whose documents are gone for good."""

    correlation_id: str
    at: str
    as_of: str
    mode_logged: str
    mode_now: str
    model_logged: str | None
    model_now: str | None
    reproduced: bool
    unchanged: bool
    passages: list[ReplayedOut]
    erased: list[int]


@router.get("/{scope}/searches", response_model=Page[LoggedSearch])
async def list_searches(
    scope: ScopeName,
    identity: Admin,
    services: ServicesDep,
    cursor: Annotated[Instant | None, Query(description="Only searches before it.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Any:
    """Newest searches of a scope with their ids."""
    rows = await services.work.run(
        services.reader.searches,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
        limit=limit + 1,
        before=cursor,
    )
    items = [{**row, "at": row["at"].isoformat()} for row in rows[:limit]]
    return {"items": items, "next_cursor": items[-1]["at"] if len(rows) > limit else None}


@router.get("/{scope}/{correlation_id}", response_model=TraceOut)
async def trace(
    scope: ScopeName, correlation_id: CorrelationId, identity: Admin, services: ServicesDep
) -> Any:
    """Walk from a search or an answer to the bytes it rests on; stored bytes are digested again."""
    found = await services.answers.run(
        services.reader.trace,
        correlation_id,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
    )
    return found.to_json()


@router.post("/{scope}/{correlation_id}/replay", response_model=ReplayOut)
async def replay(
    scope: ScopeName,
    correlation_id: CorrelationId,
    given: ReplayRequest,
    identity: Admin,
    services: ServicesDep,
) -> Any:
    """Run a logged search again, as of then and now, and say what changed and why."""
    found = await services.searches.run(
        services.reader.replay,
        correlation_id,
        given.question,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
    )
    return found.to_json()
