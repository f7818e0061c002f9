"""Erasing for good, and the certificates of it.

Belongs here: one document erased over HTTP, certificates read. What does not: the order of an
erasure (`kb_resources.stages.erase`). Nothing erased comes back, so the caller types the id again.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from kb.erasing import open_eraser
from kb.http import uploads
from kb.http.guard import Admin
from kb.http.routes.documents import DocumentId, ScopeName, visible_document
from kb.http.schemas import Input, Name, Page, Text
from kb.http.services import ServicesDep
from kb_resources.errors import InputError, NotFound
from kb_resources.model import DocumentKey
from kb_resources.store import erasure
from kb_resources.store.erasure import Certificate

router = APIRouter(prefix="/api/v1", tags=["erasures"])

_MOST = 1000


class EraseRequest(Input):
    """Why, and the document's id once more."""

    confirm: Name = Field(description="The document's id, typed again.")
    reason: Annotated[Text, Field(min_length=1, description="Why; kept in the certificate.")]


class CertificateOut(BaseModel):
    """What an erasure deleted, by store and kind; `finished_at` null while a store is away."""

    erasure_id: str
    scope: str
    actor: str
    reason: str
    counts: dict[str, dict[str, int]]
    remains: list[str]
    started_at: str
    finished_at: str | None
    readmitted_at: str | None
    replays: list[dict[str, Any]]


class ErasedOut(BaseModel):
    """A certificate; jobs run for documents that had the same bytes and stand alone now."""

    certificate: CertificateOut
    job_ids: list[str]


@router.post("/documents/{scope}/{document_id}/erase", response_model=ErasedOut)
async def erase(
    scope: ScopeName,
    document_id: DocumentId,
    given: EraseRequest,
    identity: Admin,
    services: ServicesDep,
) -> Any:
    """Delete a document from every store, with all versions. This cannot be taken back."""
    name = identity.use_scope(scope)

    def work() -> dict[str, Any]:
        with services.database.transaction("app", name) as conn:
            visible_document(conn, identity, name, document_id)
        if given.confirm != document_id:
            raise InputError(
                "The id typed to confirm is not the document's.",
                next_step="Send its document_id as confirm.",
                code="confirm_differs",
            )
        eraser = open_eraser(services.settings, services.line())
        done = eraser.erase(
            DocumentKey(name, document_id), actor=identity.actor, reason=given.reason
        )
        queued = [
            uploads.queue_resume(
                services.database, key.scope, key.document_id, actor=identity.actor
            )
            for key in done.woken
        ]
        return {
            "certificate": _json(done.certificate),
            "job_ids": [job.job_id for job in queued],
        }

    answer = await services.answers.run(work)
    if answer["job_ids"]:
        services.jobs_waiting.set()
    return answer


@router.get("/erasures", response_model=Page[CertificateOut])
async def list_erasures(identity: Admin, services: ServicesDep, scope: Name) -> Any:
    """Certificates of a scope, newest first, a thousand at most."""
    name = identity.use_scope(scope)

    def work() -> list[Certificate]:
        with services.capabilities().database.transaction("pipeline") as conn:
            return erasure.certificates(conn, scope=name, limit=_MOST)

    found = await services.work.run(work)
    return {"items": [_json(made) for made in found], "next_cursor": None}


@router.get("/erasures/{scope}/{erasure_id}", response_model=CertificateOut)
async def show_erasure(
    scope: ScopeName,
    erasure_id: Annotated[str, Path(pattern="^[a-z0-9]{1,64}$")],
    identity: Admin,
    services: ServicesDep,
) -> Any:
    """One certificate."""
    name = identity.use_scope(scope)

    def work() -> Certificate:
        with services.capabilities().database.transaction("pipeline") as conn:
            found = erasure.certificates(conn, scope=name, erasure_id=erasure_id, limit=1)
        if not found:
            raise NotFound(f"There is no erasure {erasure_id!r}.", next_step="List the erasures.")
        return found[0]

    return _json(await services.work.run(work))


def _json(made: Certificate) -> dict[str, Any]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(made).items()
    }
