"""Signing in at the identity provider.

Belongs here: the redirect there and the way back. What does not: the protocol (`kb.access.oidc`).
The cookie that comes back from another site must be `lax`; it is sealed and lives ten minutes.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse

from kb.access import oidc, sessions
from kb.access.oidc import Login, Provider
from kb.http.guard import required_secret
from kb.http.routes.session import is_https, set_cookie
from kb.http.services import Services, ServicesDep
from kb_resources.errors import NotFound, PolicyError

LOGIN_COOKIE = "kb_login"
_PURPOSE = "oidc-login"
_PATH = "/auth"

router = APIRouter(prefix=_PATH, tags=["session"])


@router.get("/login", response_class=RedirectResponse, status_code=303)
async def login(
    request: Request,
    services: ServicesDep,
    go_to: Annotated[str, Query(alias="next", max_length=500)] = "/",
) -> RedirectResponse:
    """Send the browser to the identity provider."""
    provider, secret = _provider(services), required_secret(services)
    base = services.settings.public_url.rstrip("/") or str(request.base_url).rstrip("/")
    url, started = await services.sign_ins.run(
        provider.begin, redirect_uri=f"{base}{_PATH}/callback", go_to=go_to, now=services.clock()
    )
    response = RedirectResponse(url, 303)
    response.set_cookie(
        LOGIN_COOKIE,
        secret.seal(_PURPOSE, started.to_json()).hex(),
        max_age=int(oidc.LOGIN_LIFETIME.total_seconds()),
        path=_PATH,
        httponly=True,
        samesite="lax",
        secure=is_https(request, services),
    )
    return response


@router.get("/callback", response_class=RedirectResponse, status_code=303)
async def callback(request: Request, services: ServicesDep) -> RedirectResponse:
    """Take the browser back, signed in if the person has access here."""
    provider, secret = _provider(services), required_secret(services)
    now = services.clock()
    try:
        sealed = bytes.fromhex(request.cookies.get(LOGIN_COOKIE, ""))
    except ValueError:
        sealed = b""
    started = Login.from_json(secret.unseal(_PURPOSE, sealed))
    answer = dict(request.query_params)
    claims = await services.sign_ins.run(provider.finish, started, answer, now)
    grant = await services.work.run(services.authoriser.grant, str(claims["sub"]), now)
    if grant is None:
        raise PolicyError(
            "You are known to the identity provider but have no access here.",
            next_step="Ask an administrator to make you a member.",
            code="no_access",
        )
    opened = await services.work.run(
        sessions.open_for_member, services.database, secret, grant, now
    )
    request.state.actor = opened.identity.actor
    response = RedirectResponse(started.go_to, 303)
    set_cookie(request, response, opened, services)
    response.delete_cookie(LOGIN_COOKIE, path=_PATH)
    return response


def _provider(services: Services) -> Provider:
    if services.provider is None:
        raise NotFound(
            "This server knows no identity provider.",
            next_step="Sign in with an API key, or set KB_OIDC_ISSUER.",
        )
    return services.provider
