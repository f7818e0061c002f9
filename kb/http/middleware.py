"""What happens to every request: correlation id, headers, limits, log line, metrics.

Belongs here: the outermost layer, as plain ASGI since it runs for each request. What does not:
routes. Headers follow the OWASP Secure Headers project; the log never holds a query string, a body
or a header a caller wrote.
"""

from __future__ import annotations

import re
import secrets
import time
import traceback
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.http import problems
from kb.http.guard import no_secret
from kb_resources.tracing import Fact, span

if TYPE_CHECKING:
    from logging import Logger

    from fastapi import FastAPI

CORRELATION_HEADER = "X-Correlation-ID"
MAX_JSON_BYTES = 2**20
MAX_SIGN_IN_BYTES = 4096
"""Of bodies below `SIGN_IN_PATH`, which anybody may send."""
SIGN_IN_PATH = "/auth/"
UPLOAD_PATH = "/api/v1/documents"
_CORRELATION = re.compile(rb"[A-Za-z0-9][A-Za-z0-9_-]{7,63}")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_OPEN_WITHOUT_SECRET = "/health"  # noqa: S105 - a path


class Outermost:
    """Wraps the application; see the module.

    Args:
        app: what it wraps.
        owner: the application whose state holds services and metrics.
        log: of accesses.
    """

    def __init__(self, app: ASGIApp, owner: FastAPI, log: Logger) -> None:
        self._app = app
        self._owner = owner
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(self._app, self._owner, self._log, scope)
        traced = self._owner.state.services.settings.traces
        with span("HTTP", on=traced, caller=_caller(scope)) as facts:
            await exchange.serve(receive, send)
            facts |= exchange.facts


def _caller(scope: Scope) -> dict[str, str]:
    """The headers that say which trace a request belongs to."""
    names = (b"traceparent", b"tracestate")
    return {
        name.decode(): text.decode("latin-1") for name, text in scope["headers"] if name in names
    }


class _Exchange:
    """One request and its response."""

    def __init__(self, app: ASGIApp, owner: FastAPI, log: Logger, scope: Scope) -> None:
        self._app, self._owner, self._log = app, owner, log
        self._method = scope["method"]
        # Routes answer HEAD as they do GET (RFC 9110, 9.3.2); the server below sends no body.
        self._scope = {**scope, "method": "GET"} if self._method == "HEAD" else scope
        self._status = 0
        self._received = 0
        self._sent = 0
        self._id = _correlation_id(scope)
        self._scope.setdefault("state", {})["correlation_id"] = self._id

    async def serve(self, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        unknown = self._scope["path"].startswith(SIGN_IN_PATH)
        limit = MAX_SIGN_IN_BYTES if unknown else MAX_JSON_BYTES

        async def watched_receive() -> Message:
            message = await receive()
            self._received += len(message.get("body", b""))
            if self._received > limit and not self._uploads:
                raise _too_large(limit)
            return message

        async def watched_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._headers(message)]
            elif message["type"] == "http.response.body" and self._method != "HEAD":
                self._sent += len(message.get("body", b""))
            await send(message)

        try:
            if self._owner.state.services.secret is None and self._scope["path"] != (
                _OPEN_WITHOUT_SECRET
            ):
                response = problems.of_error(self._id, no_secret())
                await response(self._scope, watched_receive, watched_send)
            else:
                await self._app(self._scope, watched_receive, watched_send)
        except HTTPException as error:  # the limit, where no route of ours read the body
            refused = problems.of_http(self._id, error)
            await self._answer(refused, watched_receive, watched_send)
        except Exception as error:  # noqa: BLE001 - the last one to answer; the log gets all
            self._log_defect(error)
            unexpected = problems.problem(
                self._id,
                500,
                "unexpected",
                "Unexpected",
                "Something broke that should not.",
                next_step="Report the correlation id; the server's log has the place.",
            )
            await self._answer(unexpected, watched_receive, watched_send)
        finally:
            self._record(time.perf_counter() - started)

    @property
    def facts(self) -> dict[str, Fact]:
        """What a span says about it, named as OpenTelemetry names it."""
        return {
            "http.request.method": self._method,
            "http.route": getattr(self._scope.get("route"), "path", None) or "unmatched",
            "http.response.status_code": self._status,
            "kb.correlation_id": self._id,
        }

    async def _answer(self, response: ASGIApp, receive: Receive, send: Send) -> None:
        if not self._status:
            await response(self._scope, receive, send)

    @property
    def _uploads(self) -> bool:
        return bool(self._scope["method"] == "POST" and self._scope["path"] == UPLOAD_PATH)

    def _headers(self, message: Message) -> list[tuple[bytes, bytes]]:
        own = [*_HEADERS, (CORRELATION_HEADER.lower().encode(), self._id.encode())]
        given = {name for name, _ in message.get("headers", ())}
        if self._scope["path"].startswith("/api/") and b"cache-control" not in given:
            own.append((b"cache-control", b"no-store"))
        return own

    def _record(self, seconds: float) -> None:
        route = getattr(self._scope.get("route"), "path", None) or "unmatched"
        method = self._method
        self._owner.state.metrics.seen(method, route, self._status, seconds)
        line: dict[str, Any] = {
            "event": "request",
            "method": method,
            "route": route,
            "status": self._status,
            "duration_ms": round(seconds * 1000, 1),
            "bytes_in": self._received,
            "bytes_out": self._sent,
            "actor": self._scope["state"].get("actor"),
            "correlation_id": self._id,
        }
        if away := self._scope["state"].get("away"):
            line["away"] = away
        self._log.info("request", extra={"fields": line})

    def _log_defect(self, error: Exception) -> None:
        """Class and place, not the message, which may quote what somebody asked."""
        place = [
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        fields = {
            "event": "defect",
            "error": type(error).__name__,
            "place": place[-12:],
            "correlation_id": self._id,
        }
        self._log.error("defect", extra={"fields": fields})


def _correlation_id(scope: Scope) -> str:
    """The caller's own, where it is one, so that its logs and ours meet."""
    name = CORRELATION_HEADER.lower().encode()
    for key, value in scope["headers"]:
        if key == name and _CORRELATION.fullmatch(value):
            return str(value.decode())
    return secrets.token_hex(12)


def _too_large(limit: int) -> HTTPException:
    """An exception that FastAPI lets through from where it reads the body."""
    return HTTPException(413, f"The request is larger than {limit:,} bytes.")
