"""Who a request comes from, and whether its route is open to them.

Belongs here: credentials of a request to an `Identity`, CSRF, roles of routes. What does not: what
credentials are (`kb.access`). A bearer key wins over a cookie; an actor header counts only beside
a key, since anybody can write one. See OWASP, "Cross-Site Request Forgery Prevention".
"""

from __future__ import annotations

import hmac
import re
from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Request

from kb.access import keys, sessions
from kb.access.identity import Identity, Role
from kb.access.secret import Secret
from kb.http.services import Services, services_of
from kb_resources.errors import InputError, PolicyError, UnavailableError

SESSION_COOKIE = "kb_session"
CSRF_HEADER = "X-CSRF-Token"
ACTOR_HEADER = "X-KB-Actor"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ACTOR = re.compile(r"[^\W_][\w.@+:/-]{0,99}")

SECURITY_SCHEMES = {
    "key": {"type": "http", "description": "An API key, kb_….", "scheme": "bearer"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
}
"""For the API's description. As dependencies of FastAPI they would be solved for each request."""


class Needs:
    """A dependency that admits identities of a role and gives them to the route."""

    def __init__(self, role: Role) -> None:
        self.role = role

    async def __call__(self, request: Request) -> Identity:
        """The identity of a request, admitted.

        Raises:
            PolicyError: nobody (`unauthenticated`), no CSRF token (`csrf`), or no such right.
        """
        identity = await identify(request)
        if identity is None:
            raise unauthenticated()
        check_csrf(request, identity)
        identity.require(self.role)
        request.state.actor = identity.actor
        return identity


Viewer = Annotated[Identity, Depends(Needs(Role.VIEWER))]
Editor = Annotated[Identity, Depends(Needs(Role.EDITOR))]
Admin = Annotated[Identity, Depends(Needs(Role.ADMIN))]


async def identify(request: Request) -> Identity | None:
    """Who a request comes from, or None where it brings nothing that holds."""
    services = services_of(request)
    secret = required_secret(services)
    token = bearer_token(request)
    if token is not None:
        found = await services.work.run(
            keys.recognise, services.database, secret, token, services.clock()
        )
        return None if found is None else _spoken_for(request, found)
    cookie = request.cookies.get(SESSION_COOKIE)
    if not cookie:
        return None
    return await services.work.run(
        sessions.recognise,
        services.database,
        secret,
        services.authoriser,
        cookie,
        services.clock(),
    )


def bearer_token(request: Request) -> str | None:
    """The key of the Authorization header; None where there is no such header."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def required_secret(services: Services) -> Secret:
    """The installation's secret.

    Raises:
        UnavailableError: there is none (`no_secret`).
    """
    if services.secret is None:
        raise no_secret()
    return services.secret


def no_secret() -> UnavailableError:
    """What every route but /health answers without a secret."""
    return UnavailableError(
        "This server has no secret and lets nobody in.",
        next_step="Set KB_SECRET, or run kb init.",
        code="no_secret",
    )


def unauthenticated() -> PolicyError:
    """What a caller without valid credentials hears."""
    return PolicyError(
        "You are not signed in, or your key does not hold.",
        next_step="Send Authorization: Bearer kb_…, or sign in at /.",
        code="unauthenticated",
    )


def check_csrf(request: Request, identity: Identity) -> None:
    """A change out of a browser's session must carry the session's token."""
    if identity.csrf is None or request.method in _SAFE:
        return
    presented = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(presented.encode(), identity.csrf.encode()):
        raise PolicyError(
            f"The header {CSRF_HEADER} is missing or wrong.",
            next_step="Send the csrf value that /api/v1/me gave.",
            code="csrf",
        )


def _spoken_for(request: Request, identity: Identity) -> Identity:
    named = request.headers.get(ACTOR_HEADER)
    if named is None:
        return identity
    if not _ACTOR.fullmatch(named):
        raise InputError(
            f"{ACTOR_HEADER} is not a name.",
            next_step="Use letters, digits and . @ + : / - _, at most 100.",
        )
    return replace(identity, actor=f"{named} via {identity.id}")
