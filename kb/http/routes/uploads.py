"""Uploads and the jobs they become.

Belongs here: taking a file in while it streams, and how far its job is. What does not: ingesting,
which a process of its own does (`kb.http.worker`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel

from kb.access.identity import Identity
from kb.http import uploads
from kb.http.guard import Editor
from kb.http.multipart import (
    FORM_OVERHEAD_BYTES,
    Upload,
    UploadReader,
    boundary_of,
    collect,
    too_large,
)
from kb.http.schemas import Name, Page, decode_cursor, paged
from kb.http.services import Services, ServicesDep
from kb_resources.errors import NotFound
from kb_resources.store import access, jobs

router = APIRouter(prefix="/api/v1", tags=["uploads"])

_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "scope"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "scope": {"type": "string"},
                        "audiences": {
                            "type": "string",
                            "description": "Names separated by commas; missing: the uploader "
                            "alone; empty: everyone in the scope.",
                        },
                        "document_id": {"type": "string"},
                        "language": {"type": "string"},
                        "valid_from": {"type": "string", "format": "date-time"},
                    },
                }
            }
        },
    }
}


class Accepted(BaseModel):
    """A queued job."""

    job_id: str


class JobDocument(BaseModel):
    """How a document of a job ended; `pending` until then."""

    document_id: str
    state: str
    reason: str
    version: int | None = None


class JobOut(BaseModel):
    """A job."""

    job_id: str
    kind: str
    scope: str
    state: str
    actor: str
    name: str | None
    reason: str
    documents: list[JobDocument]
    created_at: str
    started_at: str | None
    finished_at: str | None


@router.post("/documents", status_code=202, openapi_extra=_FORM)
async def upload(identity: Editor, request: Request, services: ServicesDep) -> Accepted:
    """Take a file in; it is read under the size limit while it comes, then queued."""
    limit = services.settings.max_bytes
    boundary = boundary_of(request.headers.get("content-type", ""))
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit + FORM_OVERHEAD_BYTES:
        raise too_large(limit)
    await services.work.run(services.require_worker)
    job_id, folder = await services.work.run(uploads.new_spool, services.settings)
    try:
        reader = UploadReader(boundary, folder, max_bytes=limit)
        taken = await _take(reader, request.stream(), services)
        wish = uploads.wish_of(identity, taken.fields)
        await services.work.run(
            uploads.queue_upload, services.database, identity, wish, taken, job_id
        )
    except BaseException:
        await services.work.run(uploads.drop_spool, FilePath(folder))
        raise
    finally:
        uploads.received(folder)
    services.jobs_waiting.set()
    return Accepted(job_id=job_id)


@router.get("/jobs/{job_id}", response_model=JobOut)
async def show_job(
    job_id: Annotated[str, Path(pattern="^[a-z0-9]{8,64}$")],
    identity: Editor,
    services: ServicesDep,
) -> Any:
    """How far a job is; editors see their own, administrators all of their scopes."""

    def work() -> jobs.JobRow:
        with services.database.transaction("app", _scopes(services, identity)) as conn:
            job = jobs.get(conn, job_id)
        if not identity.reads_everything and job.actor != identity.actor:
            raise NotFound(f"There is no job {job_id!r}.", next_step="List the jobs.")
        return job

    return uploads.job_json(await services.work.run(work))


@router.get("/jobs", response_model=Page[JobOut])
async def list_jobs(
    identity: Editor,
    services: ServicesDep,
    scope: Annotated[Name | None, Query(description="Only of this scope.")] = None,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Any:
    """Jobs, newest first; editors see their own, administrators all of their scopes."""
    before = decode_cursor(cursor)
    chosen = None if scope is None else identity.use_scope(scope)
    actor = None if identity.reads_everything else identity.actor

    def work() -> list[jobs.JobRow]:
        names = [chosen] if chosen else _scopes(services, identity)
        with services.database.transaction("app", names) as conn:
            return jobs.list_jobs(conn, actor=actor, limit=limit + 1, before=before)

    shown, cursor = paged(await services.work.run(work), limit, lambda row: row.job_no)
    return {"items": [uploads.job_json(row) for row in shown], "next_cursor": cursor}


async def _take(reader: UploadReader, stream: AsyncIterator[bytes], services: Services) -> Upload:
    try:
        async for chunk in collect(stream):
            await services.work.run(reader.feed, chunk)
    except Exception:
        reader.close()
        raise
    return reader.finish()


def _scopes(services: Services, identity: Identity) -> list[str]:
    """Names that row level security lets through: those of the identity, or all there are."""
    if identity.scopes is not None:
        return sorted(identity.scopes)
    with services.database.transaction("app") as conn:
        there = {row["name"] for row in access.scope_overview(conn, None)}
        return sorted(there | jobs.scopes(conn))
