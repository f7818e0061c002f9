"""The review queue: what waits, what was found where, and a person's decision.

Belongs here: the queue over HTTP. What does not: deciding (`kb_resources.stages.review`). A release
is published by the ingest process, so that no search waits for it.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from kb.access.identity import Identity
from kb.http import uploads
from kb.http.guard import Editor
from kb.http.routes.documents import DocumentId, ScopeName, visible_document
from kb.http.schemas import Input, Name, Page, Text, decode_cursor, encode_cursor
from kb.http.services import Services, ServicesDep
from kb.running import commit_batch
from kb_resources.errors import NotFound
from kb_resources.model import DocumentKey, Finding, validate_document_id
from kb_resources.stages import review
from kb_resources.store import versions
from kb_resources.store.documents import Conn
from kb_resources.store.reviews import WaitingReview

router = APIRouter(prefix="/api/v1/reviews", tags=["reviews"])

_AROUND = 240
_MOST_FINDINGS = 100
_VISIBLE_PART = "body"


class FindingOut(BaseModel):
    """What a rule found; for visible text the words themselves and the text around them."""

    rule_id: str
    severity: str
    part: str
    place: str
    excerpt: str
    decoded: str | None
    explanation: str
    before: str
    matched: str
    after: str


class ReviewOut(BaseModel):
    """A version that waits for a person."""

    scope: str
    document_id: str
    version: int
    digest: str
    body_digest: str | None
    title: str | None
    source: str
    language: str | None
    reason: str
    since: str
    findings: list[FindingOut]


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="SHA-256, as in the queue.")]


class DecisionRequest(Input):
    """What was looked at, as the queue gave it, and why; kept in the document's log."""

    version: Annotated[int, Field(ge=1, le=2**31 - 1)]
    digest: Digest
    body_digest: Digest | None
    reason: Annotated[Text, Field(min_length=1)]


class ReviewDecision(BaseModel):
    """A decision; a release is published by the job."""

    document_id: str
    state: str
    job_id: str | None = None


@router.get("", response_model=Page[ReviewOut])
async def list_reviews(
    identity: Editor,
    services: ServicesDep,
    scope: Name,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Any:
    """What waits in a scope, oldest first, each finding in its place."""
    name = identity.use_scope(scope)
    after = decode_cursor(cursor) or 0
    later = await services.work.run(_waiting, services, identity, name, after, limit + 1)
    shown = later[:limit]
    items = await services.work.run(_described, services, shown)
    more = len(later) > limit
    return {"items": items, "next_cursor": encode_cursor(shown[-1].version_key) if more else None}


@router.post("/{scope}/{document_id}/release", status_code=202, response_model=ReviewDecision)
async def release(
    scope: ScopeName,
    document_id: DocumentId,
    given: DecisionRequest,
    identity: Editor,
    services: ServicesDep,
) -> Any:
    """Clear what was looked at; a job publishes it. 409 where the document is another by now."""
    key = DocumentKey(identity.use_scope(scope), validate_document_id(document_id))

    def work() -> dict[str, Any]:
        _check_visible(services, identity, key)
        caps = services.capabilities()
        review.release(caps, key, _shown(given), actor=identity.actor, reason=given.reason)
        job = uploads.queue_resume(
            services.database, key.scope, key.document_id, actor=identity.actor
        )
        return {"document_id": document_id, "state": "pending", "job_id": job.job_id}

    answer = await services.work.run(work)
    services.jobs_waiting.set()
    return answer


@router.post("/{scope}/{document_id}/reject", response_model=ReviewDecision)
async def reject(
    scope: ScopeName,
    document_id: DocumentId,
    given: DecisionRequest,
    identity: Editor,
    services: ServicesDep,
) -> Any:
    """Block what was looked at and delete its texts; 409 where the document is another by now."""
    key = DocumentKey(identity.use_scope(scope), validate_document_id(document_id))

    def work() -> dict[str, Any]:
        _check_visible(services, identity, key)
        caps = services.capabilities()
        review.reject(caps, key, _shown(given), actor=identity.actor, reason=given.reason)
        commit_batch(services.settings, caps, [key])
        return {"document_id": document_id, "state": "blocked"}

    return await services.work.run(work)


def _shown(given: DecisionRequest) -> review.Shown:
    return review.Shown(given.version, given.digest, given.body_digest)


def _waiting(
    services: Services, identity: Identity, scope: str, after: int, most: int
) -> list[WaitingReview]:
    """The queue after a place, without what is for others."""
    rows = review.waiting(services.capabilities(), scope)
    later = sorted(
        (row for row in rows if row.version_key > after), key=lambda row: row.version_key
    )
    with services.database.transaction("app", scope) as conn:
        seen = (row for row in later if _is_visible(conn, identity, row))
        return list(islice(seen, most))


def _is_visible(conn: Conn, identity: Identity, row: WaitingReview) -> bool:
    if identity.reads_everything:
        return True
    try:
        visible_document(conn, identity, row.scope, row.document_id)
    except NotFound:
        return False
    return True


def _check_visible(services: Services, identity: Identity, key: DocumentKey) -> None:
    with services.database.transaction("app", key.scope) as conn:
        visible_document(conn, identity, key.scope, key.document_id)


def _described(services: Services, rows: list[WaitingReview]) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        with services.capabilities().database.transaction("pipeline") as conn:
            findings = versions.load_findings(conn, row.version_key)
            text, _ = versions.load_extraction(conn, row.version_key)
        data = text.encode()
        named = (
            "scope",
            "document_id",
            "version",
            "digest",
            "body_digest",
            "title",
            "language",
            "reason",
        )
        found.append(
            {name: getattr(row, name) for name in named}
            | {
                "source": row.origin,
                "since": row.since.isoformat(),
                "findings": [_finding(one, data) for one in findings[:_MOST_FINDINGS]],
            }
        )
    return found


def _finding(finding: Finding, data: bytes) -> dict[str, Any]:
    """A finding with the visible text around it; `data` is what its byte offsets point into."""
    before = matched = after = ""
    if finding.part == _VISIBLE_PART:
        start, end = finding.byte_start, finding.byte_end
        before = data[max(0, start - 4 * _AROUND) : start].decode("utf-8", "ignore")[-_AROUND:]
        matched = data[start:end].decode("utf-8", "ignore")[: 4 * _AROUND]
        after = data[end : end + 4 * _AROUND].decode("utf-8", "ignore")[:_AROUND]
    named = ("rule_id", "part", "place", "excerpt", "decoded", "explanation")
    return {name: getattr(finding, name) for name in named} | {
        "severity": finding.severity.value,
        "before": before,
        "matched": matched,
        "after": after,
    }
