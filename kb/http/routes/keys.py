"""API keys and members, for administrators.

Belongs here: the administration of access over HTTP. What does not: what a key is
(`kb.access.keys`). Nobody gives more than they have, and the last administrator stays.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime, BaseModel, Field

from kb.access import keys, members
from kb.http.guard import Admin, required_secret
from kb.http.schemas import Input, Name, Names, Page, decode_cursor, paged
from kb.http.services import ServicesDep
from kb_resources.store import access

router = APIRouter(prefix="/api/v1", tags=["access"])

KeyId = Annotated[str, Path(pattern="^[a-z0-9]{12}$")]
Subject = Annotated[str, Path(min_length=1, max_length=190)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KeyRequest(Input):
    """A key to be made."""

    name: Annotated[Name, Field(min_length=1)]
    role: Literal["viewer", "editor", "admin", "system"]
    scopes: Names | None = Field(description="Scope names; null opens all.")
    audiences: Names = Field(default_factory=list)
    expires_at: AwareDatetime | None = None


class RotateRequest(Input):
    """How long the old secret holds."""

    overlap_s: Annotated[int, Field(ge=0, le=30 * 86400)] = 86400


class KeyOut(BaseModel):
    """A key without its secret."""

    key_id: str
    name: str
    role: str
    scopes: list[str] | None
    audiences: list[str]
    created_by: str
    created_at: str
    expires_at: str | None
    rotated_at: str | None
    previous_until: str | None
    revoked_at: str | None
    last_used_at: str | None


class IssuedOut(BaseModel):
    """A key's secret, shown this once."""

    key_id: str
    key: str
    previous_until: str | None = None


class MemberRequest(Input):
    """What a person may do."""

    name: Name = ""
    role: Literal["viewer", "editor", "admin"]
    scopes: Names | None = Field(description="Scope names; null opens all.")
    audiences: Names = Field(default_factory=list)


class MemberOut(BaseModel):
    """A person of the identity provider."""

    subject: str
    name: str
    role: str
    scopes: list[str] | None
    audiences: list[str]
    created_by: str
    created_at: str
    removed_at: str | None


@router.get("/keys", response_model=Page[KeyOut])
async def list_keys(
    identity: Admin,
    services: ServicesDep,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Any:
    """Keys that open nothing beyond one's own scopes, newest first."""
    stamp = decode_cursor(cursor)
    before = None if stamp is None else _EPOCH + timedelta(microseconds=min(stamp, 10**16))
    scopes = None if identity.scopes is None else sorted(identity.scopes)

    def work() -> list[access.KeyRow]:
        with services.database.transaction("app") as conn:
            return access.list_keys(conn, scopes=scopes, limit=limit + 1, before=before)

    shown, cursor = paged(
        await services.work.run(work),
        limit,
        lambda row: (row.created_at - _EPOCH) // timedelta(microseconds=1),
    )
    return {"items": [_row_json(row, KeyOut) for row in shown], "next_cursor": cursor}


@router.post("/keys", status_code=201)
async def create_key(given: KeyRequest, identity: Admin, services: ServicesDep) -> IssuedOut:
    """Make a key that can do at most what its maker can."""
    made = await services.work.run(
        keys.create,
        services.database,
        required_secret(services),
        name=given.name,
        role=given.role,
        scopes=given.scopes,
        audiences=given.audiences,
        expires_at=given.expires_at,
        by=identity.actor,
        now=services.clock(),
        maker=identity,
    )
    return IssuedOut(key_id=made.key_id, key=made.token)


@router.post("/keys/{key_id}/rotate")
async def rotate_key(
    key_id: KeyId, identity: Admin, services: ServicesDep, given: RotateRequest | None = None
) -> IssuedOut:
    """Give a key another secret; the old one holds on for a while."""
    wish = given or RotateRequest()
    made = await services.work.run(
        keys.rotate,
        services.database,
        required_secret(services),
        key_id,
        by=identity.actor,
        now=services.clock(),
        overlap=timedelta(seconds=wish.overlap_s),
        maker=identity,
    )
    until = made.previous_until.isoformat() if made.previous_until else None
    return IssuedOut(key_id=made.key_id, key=made.token, previous_until=until)


@router.delete("/keys/{key_id}", status_code=204)
async def revoke_key(key_id: KeyId, identity: Admin, services: ServicesDep) -> None:
    """End a key and its sessions at once; the last administrator stays."""
    await services.work.run(
        keys.revoke, services.database, key_id, by=identity.actor, maker=identity
    )


@router.get("/members", response_model=Page[MemberOut])
async def list_members(identity: Admin, services: ServicesDep) -> Any:
    """People whom the identity provider signs in and who have access here."""
    rows = await services.work.run(members.list_all, services.database, identity)
    return {"items": [_row_json(row, MemberOut) for row in rows], "next_cursor": None}


@router.put("/members/{subject:path}", status_code=204)
async def put_member(
    subject: Subject, given: MemberRequest, identity: Admin, services: ServicesDep
) -> None:
    """Give a person a role here, or change it."""
    await services.work.run(
        members.put,
        services.database,
        subject,
        name=given.name,
        role=given.role,
        scopes=given.scopes,
        audiences=given.audiences,
        by=identity.actor,
        maker=identity,
    )


@router.delete("/members/{subject:path}", status_code=204)
async def remove_member(subject: Subject, identity: Admin, services: ServicesDep) -> None:
    """End a person's access and sessions; the last administrator stays."""
    await services.work.run(
        members.remove, services.database, subject, by=identity.actor, maker=identity
    )


def _row_json(row: Any, shape: type[BaseModel]) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in shape.model_fields}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
