"""Documents and what a version says.

Belongs here: reading documents. What does not: their history (`history`), changing them
(`changes`), uploads.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from kb.access.identity import Identity, Role
from kb.http.guard import Viewer
from kb.http.schemas import Name, Page, Text, decode_cursor, paged
from kb.http.services import ServicesDep
from kb_resources.errors import InputError, NotFound
from kb_resources.model import DocumentState, validate_document_id
from kb_resources.store import documents as ledger
from kb_resources.store import listing
from kb_resources.store.documents import Conn

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])

ScopeName = Annotated[str, Path(max_length=63)]
DocumentId = Annotated[str, Path(max_length=100)]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]


class DocumentOut(BaseModel):
    """A document and its newest version; `in_force` is the one that holds, None where none does."""

    document_id: str
    scope: str
    state: str
    reason: str
    title: str | None
    source: str
    source_kind: str
    audiences: list[str]
    version: int | None
    in_force: int | None
    digest: str | None
    media_type: str | None
    size_bytes: int | None
    language: str | None
    created_at: str
    updated_at: str


class EventOut(BaseModel):
    """Something that happened to a document."""

    at: str
    version: int | None
    event: str
    actor: str
    details: dict[str, Any]


class DocumentDetail(DocumentOut):
    """A document with what was read of it and what happened to it."""

    coverage: dict[str, Any] | None
    metadata: dict[str, Any] | None
    preview: str | None
    lifecycle: list[EventOut]


class BlockOut(BaseModel):
    """One block of a body; offsets in code points of the body, half-open."""

    node_id: str
    kind: str
    level: int | None
    heading_path: list[str]
    page: int | None
    char_start: int
    char_end: int


class PlaceOut(BaseModel):
    """Where a passage stands in the body, in code points, half-open."""

    passage_id: str
    page: int | None
    char_start: int
    char_end: int


class BodyOut(BaseModel):
    """What a version says, as Markdown."""

    scope: str
    document_id: str
    version: int
    title: str
    source: str
    digest: str
    media_type: str
    language: str
    body: str
    blocks: list[BlockOut]
    passages: list[PlaceOut]


class NodeOut(BaseModel):
    """A heading with what is below it."""

    node_id: str
    title: str
    level: int
    heading_path: list[str]
    page: int | None
    byte_start: int
    passage_ids: list[str]
    children: list[NodeOut]


class OutlineOut(BaseModel):
    """The headings of a version."""

    scope: str
    document_id: str
    version: int
    title: str
    outline: NodeOut


@router.get("", response_model=Page[DocumentOut])
async def list_documents(
    identity: Viewer,
    services: ServicesDep,
    scope: Name,
    state: Annotated[Name | None, Query(description="Only documents in this state.")] = None,
    q: Annotated[Text | None, Query(description="Part of the title, the source or the id.")] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """Documents of a scope that one may read, newest first."""
    name = identity.use_scope(scope)
    if state is not None and state not in list(DocumentState):
        raise InputError(
            f"{state!r} is no state.", next_step=f"Use one of {', '.join(DocumentState)}."
        )
    before = decode_cursor(cursor)

    def work() -> list[dict[str, Any]]:
        with services.database.transaction("app", name) as conn:
            ledger.get_scope(conn, name)
            return listing.documents(
                conn,
                name,
                audiences=identity.visible_audiences(),
                state=state,
                q=q or None,
                limit=limit + 1,
                before=before,
            )

    rows = await services.work.run(work)
    shown, cursor = paged(rows, limit, lambda row: int(row["document_key"]))
    return {"items": [document_json(row) for row in shown], "next_cursor": cursor}


@router.get("/{scope}/{document_id}", response_model=DocumentDetail)
async def show_document(
    scope: ScopeName, document_id: DocumentId, identity: Viewer, services: ServicesDep
) -> Any:
    """One document: state, coverage, what happened to it."""
    name = identity.use_scope(scope)

    def work() -> dict[str, Any]:
        with services.database.transaction("app", name) as conn:
            visible_document(conn, identity, name, document_id)
            return listing.document(conn, name, document_id)

    row = await services.work.run(work)
    events = [
        {**event, "at": event["at"].isoformat(), "actor": _actor(identity, event["actor"])}
        for event in row["lifecycle"]
    ]
    shown = {name: row[name] for name in ("coverage", "metadata", "preview")}
    return document_json(row) | shown | {"lifecycle": events}


@router.get("/{scope}/{document_id}/versions/{version}/body", response_model=BodyOut)
async def body(
    scope: ScopeName,
    document_id: DocumentId,
    version: Version,
    identity: Viewer,
    services: ServicesDep,
) -> Any:
    """What a version says, with its blocks; only what the gate has cleared."""
    found = await services.work.run(
        services.reader.body,
        validate_document_id(document_id),
        scope=identity.use_scope(scope),
        principal=identity.principal(),
        version=version,
    )
    return found.to_json()


@router.get("/{scope}/{document_id}/outline", response_model=OutlineOut)
async def outline(
    scope: ScopeName,
    document_id: DocumentId,
    identity: Viewer,
    services: ServicesDep,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
) -> Any:
    """A document's headings as a tree, with the passages under each."""
    found = await services.work.run(
        services.reader.outline,
        validate_document_id(document_id),
        scope=identity.use_scope(scope),
        principal=identity.principal(),
        version=version,
    )
    return found.to_json()


def visible_document(
    conn: Conn, identity: Identity, scope: str, document_id: str
) -> dict[str, Any]:
    """The document's row, if this identity may know of it.

    Raises:
        NotFound: there is none, or it is for others.
    """
    ledger.get_scope(conn, scope)
    rows = listing.documents(
        conn,
        scope,
        audiences=identity.visible_audiences(),
        document_id=validate_document_id(document_id),
        limit=1,
    )
    if not rows:
        raise NotFound(
            f"There is no document {document_id!r} in {scope!r}.",
            next_step="List the documents of the scope.",
        )
    return rows[0]


def document_json(row: dict[str, Any]) -> dict[str, Any]:
    """A document for the API: no path of the machine, times as ISO 8601."""
    named = [name for name in DocumentOut.model_fields if name != "source"]
    shown = {name: row[name] for name in named}
    shown["source"] = row["origin"]
    for name in ("created_at", "updated_at"):
        shown[name] = row[name].isoformat()
    return shown


def _actor(identity: Identity, actor: str) -> str:
    """Who did it: for editors; others need not know."""
    return actor if identity.may(Role.EDITOR) or actor == identity.actor else ""
