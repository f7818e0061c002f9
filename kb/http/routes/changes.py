"""Decisions about documents: who may read them, removing, restoring.

Belongs here: checking that one may decide, and handing on what a run has to take up. What does not:
the decisions themselves (`kb_resources.stages.removal`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from kb.access.identity import Identity
from kb.http import uploads
from kb.http.guard import Editor
from kb.http.routes.documents import DocumentId, ScopeName, visible_document
from kb.http.schemas import Input, Names, Text
from kb.http.services import Services, ServicesDep
from kb.running import commit_batch
from kb_resources.model import DocumentKey
from kb_resources.stages import removal
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.removal import Decided

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])

Reason = Annotated[Text, Field(min_length=1, description="Why; kept in the document's log.")]


class AudiencesRequest(Input):
    """Who may read a document from now on; empty: everyone in the scope."""

    audiences: Names
    reason: Reason = "Set over HTTP."


class RestoreRequest(Input):
    """Why a document comes back."""

    reason: Reason = "Restored over HTTP."


class DecisionOut(BaseModel):
    """What a decision led to; jobs run for what has to be published anew."""

    document_id: str
    changed: bool
    state: str
    audiences: list[str]
    job_ids: list[str]


@router.put("/{scope}/{document_id}/audiences", response_model=DecisionOut)
async def set_audiences(
    scope: ScopeName,
    document_id: DocumentId,
    given: AudiencesRequest,
    identity: Editor,
    services: ServicesDep,
) -> Any:
    """Decide who may read a document; it holds from the next query on."""
    audiences = identity.publish_to(given.audiences)

    def decide(caps: Capabilities, key: DocumentKey) -> Decided:
        return removal.set_audiences(
            caps, key, audiences, actor=identity.actor, reason=given.reason
        )

    return await _decided(services, identity, scope, document_id, decide)


@router.delete("/{scope}/{document_id}", response_model=DecisionOut)
async def remove(
    scope: ScopeName,
    document_id: DocumentId,
    identity: Editor,
    services: ServicesDep,
    reason: Annotated[Text, Query(min_length=1, description="Why; kept in the document's log.")],
) -> Any:
    """Take a document out of search; its history stays and it can be restored."""

    def decide(caps: Capabilities, key: DocumentKey) -> Decided:
        return removal.remove(caps, key, actor=identity.actor, reason=reason)

    return await _decided(services, identity, scope, document_id, decide)


@router.post("/{scope}/{document_id}/restore", response_model=DecisionOut)
async def restore(
    scope: ScopeName,
    document_id: DocumentId,
    identity: Editor,
    services: ServicesDep,
    given: RestoreRequest | None = None,
) -> Any:
    """Bring a removed document back."""
    wish = given or RestoreRequest()

    def decide(caps: Capabilities, key: DocumentKey) -> Decided:
        return removal.restore(caps, key, actor=identity.actor, reason=wish.reason)

    return await _decided(services, identity, scope, document_id, decide)


async def _decided(
    services: Services,
    identity: Identity,
    scope: str,
    document_id: str,
    decide: Callable[[Capabilities, DocumentKey], Decided],
) -> dict[str, Any]:
    name = identity.use_scope(scope)
    queued: list[str] = []

    def work() -> dict[str, Any]:
        with services.database.transaction("app", name) as conn:
            visible_document(conn, identity, name, document_id)
        decided = decide(services.capabilities(), DocumentKey(name, document_id))
        # Before the export, which may be away: deciding again would wake nothing.
        for key in decided.to_run:
            job = uploads.queue_resume(
                services.database, key.scope, key.document_id, actor=identity.actor
            )
            queued.append(job.job_id)
        if decided.changed:
            commit_batch(services.settings, services.capabilities(), [decided.key])
        return {
            "document_id": document_id,
            "changed": decided.changed,
            "state": decided.state.value,
            "audiences": list(decided.audiences),
            "job_ids": queued,
        }

    try:
        return await services.work.run(work)
    finally:
        if queued:
            services.jobs_waiting.set()
