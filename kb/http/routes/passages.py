"""Passages by id: to quote, to link, to read around.

Belongs here: one passage and its neighbours. What does not: searching (`search`).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from kb.http.guard import Viewer
from kb.http.routes.documents import ScopeName
from kb.http.schemas import HitOut
from kb.http.services import ServicesDep

router = APIRouter(prefix="/api/v1/passages", tags=["passages"])

PassageId = Annotated[str, Path(max_length=400)]
Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Default: what holds now.")]
Neighbours = Annotated[int, Query(ge=0, le=50)]


class PassageOut(HitOut):
    """A passage with the address that opens it in the page."""

    link: str


class EntityOut(BaseModel):
    """A name that stands in a section; the score is the model's own, 0..1."""

    text: str
    type: str
    score: float


class NotesOut(BaseModel):
    """What a model noted on a section: its words, not the document's."""

    summary: str
    entities: list[EntityOut]
    keywords: list[str]
    parent_summaries: list[str] = Field(description="Of the sections around, the document's first.")
    made_by: str


class ContextOut(BaseModel):
    """A passage between its neighbours, in reading order."""

    passage: HitOut
    before: list[HitOut]
    after: list[HitOut]
    link: str
    notes: NotesOut | None = Field(description="Null where KB_ENRICH made none.")


@router.get("/{scope}/{passage_id}", response_model=PassageOut)
async def show_passage(
    scope: ScopeName,
    passage_id: PassageId,
    identity: Viewer,
    services: ServicesDep,
    version: Version = None,
) -> Any:
    """One passage: of the version named, else of the one that holds now."""
    hit = await services.work.run(
        services.reader.passage,
        passage_id,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
        version=version,
    )
    return hit.to_json() | {"link": hit.link}


@router.get("/{scope}/{passage_id}/context", response_model=ContextOut)
async def context(
    scope: ScopeName,
    passage_id: PassageId,
    identity: Viewer,
    services: ServicesDep,
    before: Neighbours = 2,
    after: Neighbours = 2,
    version: Version = None,
) -> Any:
    """A passage with the passages before and after it in the same version."""
    found = await services.work.run(
        services.reader.context,
        passage_id,
        before,
        after,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
        version=version,
    )
    return found.to_json()
