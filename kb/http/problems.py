"""Typed errors as problem details.

Belongs here: status codes and the shape of a problem. What does not: raising. See RFC 9457; the
`code` is the one of `kb_resources.errors` and safe to match on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from kb.advice import over_http
from kb_resources.errors import (
    ConflictError,
    InputError,
    KbError,
    NotFound,
    PolicyError,
    UnavailableError,
)

MEDIA_TYPE = "application/problem+json"
_BY_CODE = {
    "unauthenticated": 401,
    "not_sealed": 401,
    "gate": 409,
    "last_admin": 409,
    "export_on": 409,
    "read_only": 501,
    "request_too_large": 413,
    "unsupported_media_type": 415,
    "malformed_reply": 502,
}
_BY_CLASS: tuple[tuple[type[KbError], int], ...] = (
    (InputError, 400),
    (PolicyError, 403),
    (NotFound, 404),
    (ConflictError, 409),
    (UnavailableError, 503),
)
_SPEAKABLE = frozenset(
    ("no_secret", "roles_stale", "busy", "pool_exhausted", "oidc_unavailable", "oidc_unsafe")
)
"""Unavailable for reasons that name neither paths nor addresses."""
_HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}
RETRY_AFTER_S = 5
MAX_ERRORS = 20
"""Places that one problem names; what does not fit in more is told again once these are mended."""
_MAX_PLACE = 200


class Problem(BaseModel):
    """What went wrong and what to do next."""

    type: str = Field(description="URN of the code.")
    title: str = Field(description="The kind of error.")
    status: int
    detail: str = Field(description="What happened, for a person.")
    code: str = Field(description="Stable identifier, safe to match on.")
    next_step: str = Field(description="What to do next, one sentence; may be empty.")
    retryable: bool = Field(description="Whether the same call may succeed later.")
    correlation_id: str = Field(description="Names this request in the logs.")
    errors: list[dict[str, str]] | None = Field(
        default=None, description="Where the input does not fit: `at` and `why`; 20 places at most."
    )


def status_of(error: KbError) -> int:
    """The HTTP status of a typed error."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((status for kind, status in _BY_CLASS if isinstance(error, kind)), 500)


def problem(
    correlation_id: str,
    status: int,
    code: str,
    title: str,
    detail: str,
    *,
    next_step: str = "",
    retryable: bool = False,
    errors: Sequence[Mapping[str, str]] | None = None,
) -> JSONResponse:
    """A problem as a response."""
    content: dict[str, Any] = {
        "type": f"urn:kb:error:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "next_step": next_step,
        "retryable": retryable,
        "correlation_id": correlation_id,
    }
    if errors is not None:
        content["errors"] = [dict(error) for error in errors]
    headers = {"Cache-Control": "no-store"}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="kb"'
    if status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def of_error(correlation_id: str, error: KbError) -> JSONResponse:
    """The problem of a typed error."""
    status = status_of(error)
    return problem(
        correlation_id,
        status,
        error.code,
        type(error).__name__,
        error.message,
        next_step=over_http(error.next_step, status),
        retryable=error.retryable,
    )


async def handle_error(request: Request, error: Exception) -> JSONResponse:
    """For errors of our own tree; strangers hear no more of one's own services than their kind."""
    assert isinstance(error, KbError)  # noqa: S101 - registered for this class
    stranger = getattr(request.state, "actor", None) is None
    if isinstance(error, UnavailableError) and stranger and error.code not in _SPEAKABLE:
        request.state.away = str(error)
        error = UnavailableError(
            "The database or the model is away.",
            next_step="Try again; the server's log says more.",
            code=error.code,
        )
    return of_error(request.state.correlation_id, error)


async def handle_validation(request: Request, error: Exception) -> JSONResponse:
    """For input that does not fit its schema; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
    all_errors = error.errors()
    found = [
        {
            "at": ".".join(str(part)[:_MAX_PLACE] for part in item["loc"]),
            "why": str(item["msg"])[:_MAX_PLACE],
        }
        for item in all_errors[:MAX_ERRORS]
    ]
    no_scope = any(
        item["type"] == "missing" and item["loc"][-1] == "scope" for item in all_errors[:MAX_ERRORS]
    )
    if no_scope:
        return problem(
            request.state.correlation_id,
            400,
            "scope_required",
            "ScopeRequired",
            "No scope was given.",
            next_step="Name one of the scopes that /api/v1/me lists.",
            errors=found,
        )
    return problem(
        request.state.correlation_id,
        422,
        "invalid_input",
        "InputError",
        "The request does not fit its schema.",
        next_step="Correct what `errors` names; the schema is at /api/v1/openapi.json.",
        errors=found,
    )


async def handle_http(request: Request, error: Exception) -> JSONResponse:
    """For what the router itself refuses."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    return of_http(request.state.correlation_id, error)


def of_http(correlation_id: str, error: HTTPException) -> JSONResponse:
    """The problem of an exception of the framework."""
    response = problem(
        correlation_id,
        error.status_code,
        _HTTP_CODES.get(error.status_code, "invalid_input"),
        "HTTP",
        str(error.detail),
        next_step="The routes and their limits are listed in /api/v1/openapi.json.",
    )
    response.headers.update(error.headers or {})
    return response
