"""The MCP server behind this server's keys.

Belongs here: admitting a caller before the MCP application sees the request. What does not: its
tools (`kb.mcp`). Only bearer keys are taken: a browser's cookie would open the tools to any page.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.access.identity import Role
from kb.http import problems
from kb.http.guard import bearer_token, identify, unauthenticated
from kb.http.services import Services
from kb_resources.errors import KbError
from kb_resources.model import Principal

if TYPE_CHECKING:
    from fastapi import FastAPI

PATH = "/mcp"


class McpGate:
    """ASGI application at `/mcp`: the MCP server for those who hold a key.

    Attributes:
        role: what a caller needs.
    """

    role = Role.VIEWER

    def __init__(self) -> None:
        self._app: ASGIApp | None = None

    @asynccontextmanager
    async def running(self, services: Services) -> AsyncIterator[None]:
        """Around the life of the server."""
        from kb.mcp.server import create_server, http_app

        server = create_server(services.reader, _principal)
        self._app, run = http_app(server, path=PATH, allowed_hosts=())
        async with run():
            yield
        self._app = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        correlation_id = request.state.correlation_id
        try:
            identity = await identify(request) if bearer_token(request) else None
            if identity is None:
                raise unauthenticated()
            identity.require(self.role)
        except KbError as error:
            told = await problems.handle_error(request, error)
            await told(scope, receive, send)
            return
        request.state.actor = identity.actor
        if request.method != "POST":  # without sessions there is no stream to open, none to end
            refused = HTTPException(405, "MCP is spoken by POST here.", {"Allow": "POST"})
            await problems.of_http(correlation_id, refused)(scope, receive, send)
            return
        request.state.principal = identity.principal()
        assert self._app is not None  # noqa: S101 - requests come while it runs
        await self._app(scope, receive, send)


def mount(app: FastAPI) -> McpGate:
    """Put the gate into an application."""
    gate = McpGate()
    app.router.routes.append(Route(PATH, gate, name="mcp"))
    return gate


def _principal(request: Request | None) -> Principal:
    if request is None:
        raise unauthenticated()
    found: Principal = request.state.principal
    return found
