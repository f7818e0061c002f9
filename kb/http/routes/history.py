"""What became of a document: its versions, when each held and when that was known, differences.

Belongs here: reading history. What does not: documents as they are (`documents`).
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from kb.http.guard import Viewer
from kb.http.routes.documents import DocumentId, ScopeName, visible_document
from kb.http.schemas import Instant, Page
from kb.http.services import ServicesDep
from kb_resources.model import validate_document_id
from kb_resources.store import listing
from kb_resources.store.lifecycle import Interval as Held

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])


class Interval(BaseModel):
    """When a version held; `valid_until` null while it does."""

    valid_from: str | None
    valid_until: str | None


class VersionOut(BaseModel):
    """One version of a document."""

    version: int
    digest: str
    media_type: str
    size_bytes: int
    title: str | None
    language: str | None
    state: str | None
    reason: str
    created_at: str
    validity: list[Interval]


class HeldOut(BaseModel):
    """A version held in `[valid_from, valid_until)`, as known in `[known_from, known_until)`."""

    version: int
    valid_from: str | None
    valid_until: str | None
    known_from: str | None
    known_until: str | None


class HunkOut(BaseModel):
    """A stretch of text of both versions or of one."""

    op: Literal["equal", "insert", "delete"]
    text: str


class DiffOut(BaseModel):
    """What changed, in reading order."""

    hunks: list[HunkOut]


@router.get("/{scope}/{document_id}/history", response_model=Page[VersionOut])
async def history(
    scope: ScopeName, document_id: DocumentId, identity: Viewer, services: ServicesDep
) -> Any:
    """Versions of a document with the intervals they held in, oldest first."""
    name = identity.use_scope(scope)

    def work() -> list[dict[str, Any]]:
        with services.database.transaction("app", name) as conn:
            visible_document(conn, identity, name, document_id)
            return listing.history(conn, name, document_id)

    rows = await services.work.run(work)
    items = [{**row, "created_at": row["created_at"].isoformat()} for row in rows]
    return {"items": items, "next_cursor": None}


@router.get("/{scope}/{document_id}/intervals", response_model=Page[HeldOut])
async def list_intervals(
    scope: ScopeName,
    document_id: DocumentId,
    identity: Viewer,
    services: ServicesDep,
    as_of: Annotated[Instant | None, Query(description="Only what held then.")] = None,
    known_at: Annotated[Instant | None, Query(description="Only as it was known then.")] = None,
) -> Any:
    """When each version held, and when that was known: corrections stay visible."""
    name = identity.use_scope(scope)

    def work() -> list[Held]:
        with services.database.transaction("app", name) as conn:
            visible_document(conn, identity, name, document_id)
        return services.reader.intervals(
            document_id,
            scope=name,
            known_at=known_at,
            valid_at=as_of,
            audiences=identity.visible_audiences(),
        )

    items = [
        {
            field: value.isoformat() if isinstance(value, datetime) else value
            for field, value in asdict(held).items()
        }
        for held in await services.work.run(work)
    ]
    return {"items": items, "next_cursor": None}


@router.get("/{scope}/{document_id}/diff", response_model=DiffOut)
async def diff(
    scope: ScopeName,
    document_id: DocumentId,
    identity: Viewer,
    services: ServicesDep,
    old: Annotated[int, Query(alias="from", ge=1, le=2**31 - 1)],
    new: Annotated[int, Query(alias="to", ge=1, le=2**31 - 1)],
) -> Any:
    """What changed between two versions that one may read, word by word."""
    hunks = await services.work.run(
        services.reader.diff,
        validate_document_id(document_id),
        scope=identity.use_scope(scope),
        old=old,
        new=new,
        audiences=identity.visible_audiences(),
    )
    return {"hunks": [{"op": hunk.op, "text": hunk.text} for hunk in hunks]}
