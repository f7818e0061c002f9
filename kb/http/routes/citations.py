"""Quotes: checked in a passage, kept for a holder, looked at again when documents change.

Belongs here: citations over HTTP. What does not: the rules of quoting (`kb_resources.answer`).
Checking changes nothing but what the last check found, so viewers may ask for it; keeping and
forgetting is for editors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from kb.http.guard import Editor, Viewer
from kb.http.schemas import Input, Name, Page, Quote, Text
from kb.http.services import ServicesDep
from kb_resources.errors import InputError

router = APIRouter(prefix="/api/v1/citations", tags=["citations"])

_ID = "^[a-z0-9]{1,64}$"
CitationId = Annotated[str, Field(pattern=_ID)]
Status = Literal["stands", "superseded", "moved", "missing"]
PassageName = Annotated[str, Field(min_length=1, max_length=400)]
VersionNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
Holder = Annotated[
    Name, Field(min_length=1, description="Whose it is: a person, a page, a record.")
]


class QuoteRequest(Input):
    """Words that somebody says stand in a passage."""

    scope: Name
    passage_id: PassageName
    quote: Quote
    version: VersionNumber | None = Field(None, description="Default: what holds now.")


class KeepRequest(QuoteRequest):
    """A quote to be kept, and for whom."""

    holder: Holder
    note: Text = ""
    correlation_id: Name | None = Field(None, description="Of the search or answer it comes from.")


class CheckRequest(Input):
    """Which kept citations to look at again now: a holder's, or one."""

    scope: Name
    holder: Holder | None = None
    citation_id: CitationId | None = None


class QuoteOut(BaseModel):
    """Whether the words stand there, and whether the document still says so."""

    accepted: bool
    reason: str | None
    message: str
    quote: str | None
    status: Status | None
    version: int
    version_now: int | None
    page: int | None
    selector: list[dict[str, Any]]
    deep_link: str | None


class CitationKept(BaseModel):
    """A kept citation and what its last check found; `quote` empty once its document is erased."""

    citation_id: str
    holder: str
    note: str
    correlation_id: str | None
    created_by: str
    created_at: str
    scope: str
    document_id: str
    version: int
    digest: str
    passage_id: str
    page: int | None
    quote: str
    selector: list[dict[str, Any]]
    deep_link: str
    status: Status
    version_now: int | None
    place: dict[str, Any] | None
    checked_at: str | None


@router.post("/verify", response_model=QuoteOut)
async def verify_quote(given: QuoteRequest, identity: Viewer, services: ServicesDep) -> Any:
    """Whether a quote stands in a passage, word for word; nothing is kept."""
    found = await services.work.run(
        services.reader.citations.verify,
        given.quote,
        given.passage_id,
        scope=identity.use_scope(given.scope),
        principal=identity.principal(),
        version=given.version,
    )
    return found.to_json()


@router.post("", status_code=201, response_model=CitationKept)
async def keep_citation(given: KeepRequest, identity: Editor, services: ServicesDep) -> Any:
    """Keep a verified quote; it is looked at again whenever its document changes."""
    kept = await services.work.run(
        services.reader.citations.keep,
        given.quote,
        given.passage_id,
        scope=identity.use_scope(given.scope),
        principal=identity.principal(),
        holder=given.holder,
        note=given.note,
        version=given.version,
        correlation_id=given.correlation_id,
    )
    return kept.to_json()


@router.get("", response_model=Page[CitationKept])
async def list_citations(
    identity: Viewer,
    services: ServicesDep,
    scope: Name,
    holder: Annotated[Name | None, Query(description="Only this holder's.")] = None,
    document_id: Annotated[Name | None, Query(description="Only of this document.")] = None,
    status: Annotated[Status | None, Query(description="Only with this outcome.")] = None,
    cursor: Annotated[str | None, Query(pattern=_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """Kept citations of documents that one may read, oldest first."""
    found = await services.work.run(
        services.reader.citations.kept,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
        holder=holder,
        document_id=document_id,
        status=status,
        after=cursor,
        limit=limit + 1,
    )
    shown = found[:limit]
    return {
        "items": [kept.to_json() for kept in shown],
        "next_cursor": shown[-1].citation_id if len(found) > limit else None,
    }


@router.post("/check", response_model=Page[CitationKept])
async def check_citations(given: CheckRequest, identity: Viewer, services: ServicesDep) -> Any:
    """Look again now at a holder's citations, or at one; all of a scope are looked at by night."""
    if (given.holder is None) == (given.citation_id is None):
        raise InputError(
            "Name either a holder or a citation.",
            next_step="Give holder or citation_id; the nightly check looks at all the others.",
        )
    # Whole bodies are looked through, which no other request should wait for.
    found = await services.answers.run(
        services.reader.citations.check,
        scope=identity.use_scope(given.scope),
        principal=identity.principal(),
        holder=given.holder,
        citation_id=given.citation_id,
    )
    return {"items": [kept.to_json() for kept in found], "next_cursor": None}


@router.delete("/{scope}/{citation_id}", status_code=204)
async def forget_citation(
    scope: Annotated[str, Path(max_length=63)],
    citation_id: Annotated[str, Path(pattern=_ID)],
    identity: Editor,
    services: ServicesDep,
) -> None:
    """Forget a kept citation."""
    await services.work.run(
        services.reader.citations.drop,
        citation_id,
        scope=identity.use_scope(scope),
        principal=identity.principal(),
    )
