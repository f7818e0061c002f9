"""The API's description, with what every route has in common.

Belongs here: problems as answers, where FastAPI would describe its own errors. What does not: the
routes' own shapes. See https://spec.openapis.org/oas/v3.1.0, "Responses Object".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from kb.http import problems
from kb.http.guard import SECURITY_SCHEMES, Needs

_ERRORS = {
    "4XX": "What the caller can mend.",
    "500": "A defect; the correlation id leads to its place.",
    "501": "This server may not do that; `next_step` names what to configure.",
    "502": "A model answered otherwise than it was asked to.",
    "503": "Something is away; try again after Retry-After.",
}
_REPLACED = ("HTTPValidationError", "ValidationError")


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        schemas = made["components"]["schemas"]
        for name in _REPLACED:
            schemas.pop(name, None)
        schemas["Problem"] = problems.Problem.model_json_schema()
        made["components"]["securitySchemes"] = SECURITY_SCHEMES
        guarded = set(_guarded(app.routes))
        for path, operations in made["paths"].items():
            for method, operation in operations.items():
                if (path, method.upper()) in guarded:
                    operation["security"] = [{name: []} for name in SECURITY_SCHEMES]
                operation["responses"].pop("422", None)
                operation["responses"] |= {code: _problem(text) for code, text in _ERRORS.items()}
        app.openapi_schema = made
    return app.openapi_schema


def _guarded(routes: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Path and method of routes that ask who somebody is, those of included routers too."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from _guarded(included.routes)
        elif isinstance(route, APIRoute) and any(
            isinstance(needed.call, Needs) for needed in route.dependant.dependencies
        ):
            yield from ((route.path_format, method) for method in route.methods or ())


def _problem(text: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": text, "content": {problems.MEDIA_TYPE: {"schema": schema}}}
