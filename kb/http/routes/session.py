"""Signing in and out, and who one is.

Belongs here: sessions by API key and `/me`. What does not: the identity provider (`oidc`).
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from kb.access import keys, sessions
from kb.access.identity import Identity
from kb.access.sessions import OpenedSession
from kb.http.guard import SESSION_COOKIE, Viewer, required_secret, unauthenticated
from kb.http.schemas import Input
from kb.http.services import Services, ServicesDep
from kb_resources.store import access

router = APIRouter(tags=["session"])


class ScopeOut(BaseModel):
    """A scope one may use."""

    name: str
    title: str
    documents: int


class Me(BaseModel):
    """Who one is and what one may use."""

    actor: str
    name: str
    role: str
    audiences: list[str]
    scopes: list[ScopeOut]
    csrf: str | None = Field(description="To be sent as X-CSRF-Token; null for a key.")


class SignIn(Input):
    """An API key."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


class SignedIn(BaseModel):
    """A new session."""

    actor: str
    role: str
    csrf: str


@router.get("/api/v1/me")
async def me(identity: Viewer, services: ServicesDep) -> Me:
    """Who one is, and the scopes one may use with the number of documents that one may read."""
    rows = await services.work.run(_scopes, services, identity)
    return Me(
        actor=identity.actor,
        name=identity.name,
        role=identity.role.label,
        audiences=sorted(identity.audiences),
        scopes=[ScopeOut(**row) for row in rows],
        csrf=identity.csrf,
    )


@router.post("/auth/session", status_code=201)
async def sign_in(
    given: SignIn, request: Request, response: Response, services: ServicesDep
) -> SignedIn:
    """Exchange an API key for a session cookie that scripts cannot read."""
    secret = required_secret(services)
    now = services.clock()
    identity = await services.work.run(keys.recognise, services.database, secret, given.key, now)
    if identity is None:
        raise unauthenticated()
    opened = await services.work.run(
        sessions.open_for_key, services.database, secret, identity, given.key, now
    )
    request.state.actor = identity.actor
    set_cookie(request, response, opened, services)
    return SignedIn(actor=identity.actor, role=identity.role.label, csrf=opened.csrf)


@router.delete("/auth/session", status_code=204)
async def sign_out(
    identity: Viewer, request: Request, response: Response, services: ServicesDep
) -> None:
    """End the session; with a key there is none, and nothing happens."""
    cookie = request.cookies.get(SESSION_COOKIE)
    if identity.csrf is not None and cookie:
        secret = required_secret(services)
        await services.work.run(sessions.end, services.database, secret, cookie, by=identity.actor)
    response.delete_cookie(SESSION_COOKIE, path="/")


def set_cookie(
    request: Request, response: Response, opened: OpenedSession, services: Services
) -> None:
    """Hand the session to the browser."""
    response.set_cookie(
        SESSION_COOKIE,
        opened.cookie,
        max_age=int(sessions.LIFETIME.total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=is_https(request, services),
    )


def is_https(request: Request, services: Services) -> bool:
    """Whether people reach this server over TLS."""
    return request.url.scheme == "https" or services.settings.public_url.startswith("https:")


def _scopes(services: Services, identity: Identity) -> list[dict[str, Any]]:
    """The scopes, each with the number of documents that this identity may read."""
    names, held = identity.scopes, identity.visible_audiences()
    with services.database.transaction("app") as conn:
        found = access.scope_overview(conn, None if names is None else sorted(names))
    if held is None or not found:
        return found
    with services.database.transaction("app", [row["name"] for row in found]) as conn:
        counts = access.readable_documents(conn, held)
    return [row | {"documents": counts.get(row["name"], 0)} for row in found]
