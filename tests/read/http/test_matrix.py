"""Every route against every kind of caller: a route without a row here fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Mount

from kb.access.identity import Role
from kb.http.guard import Needs
from tests.read.http.conftest import Installation, Served

OPEN = "open"
"""Answers anybody; what it does needs no identity, or makes one."""

# Method and path of each route: who may, and how to call it. `{}` in a path is filled in `_paths`.
LOOKED_AT = {"reason": "a test", "version": 1, "digest": "0" * 64, "body_digest": None}
ROWS: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("GET", "/health"): (OPEN, {}),
    ("GET", "/ready"): (OPEN, {}),
    ("GET", "/"): (OPEN, {}),
    ("GET", "/api/v1/openapi.json"): (OPEN, {}),
    ("MOUNT", "/static"): (OPEN, {}),
    ("POST", "/auth/session"): (OPEN, {"json": {"key": "kb_none"}}),
    ("GET", "/auth/login"): (OPEN, {}),
    ("GET", "/auth/callback"): (OPEN, {}),
    ("ANY", "/mcp"): ("viewer", {}),
    ("DELETE", "/auth/session"): ("viewer", {}),
    ("GET", "/metrics"): ("admin", {}),
    ("GET", "/api/v1/me"): ("viewer", {}),
    ("POST", "/api/v1/search"): ("viewer", {"json": {"query": "leave", "scope": "{scope}"}}),
    ("POST", "/api/v1/ask"): ("viewer", {"json": {"question": "leave?", "scope": "{scope}"}}),
    ("GET", "/api/v1/documents"): ("viewer", {"query": "?scope={scope}"}),
    ("GET", "/api/v1/documents/{scope}/{document_id}"): ("viewer", {}),
    ("GET", "/api/v1/documents/{scope}/{document_id}/history"): ("viewer", {}),
    ("GET", "/api/v1/documents/{scope}/{document_id}/intervals"): ("viewer", {}),
    ("GET", "/api/v1/documents/{scope}/{document_id}/versions/{version}/body"): ("viewer", {}),
    ("GET", "/api/v1/documents/{scope}/{document_id}/diff"): ("viewer", {"query": "?from=1&to=1"}),
    ("GET", "/api/v1/documents/{scope}/{document_id}/outline"): ("viewer", {}),
    ("GET", "/api/v1/passages/{scope}/{passage_id}"): ("viewer", {}),
    ("GET", "/api/v1/passages/{scope}/{passage_id}/context"): ("viewer", {}),
    ("GET", "/api/v1/citations"): ("viewer", {"query": "?scope={scope}"}),
    ("POST", "/api/v1/citations/verify"): (
        "viewer",
        {"json": {"scope": "{scope}", "passage_id": "none", "quote": "thirty days of leave"}},
    ),
    ("POST", "/api/v1/citations/check"): (
        "viewer",
        {"json": {"scope": "{scope}", "holder": "nobody"}},
    ),
    ("POST", "/api/v1/citations"): (
        "editor",
        {
            "json": {
                "scope": "{scope}",
                "passage_id": "none",
                "quote": "thirty days of leave",
                "holder": "nobody",
            }
        },
    ),
    ("DELETE", "/api/v1/citations/{scope}/{citation_id}"): ("editor", {}),
    ("GET", "/api/v1/audit/{scope}/searches"): ("admin", {}),
    ("GET", "/api/v1/audit/{scope}/{correlation_id}"): ("admin", {}),
    ("POST", "/api/v1/audit/{scope}/{correlation_id}/replay"): (
        "admin",
        {"json": {"question": "leave?"}},
    ),
    ("POST", "/api/v1/documents/{scope}/{document_id}/erase"): (
        "admin",
        {"json": {"confirm": "nobody", "reason": "a test"}},
    ),
    ("GET", "/api/v1/erasures"): ("admin", {"query": "?scope={scope}"}),
    ("GET", "/api/v1/erasures/{scope}/{erasure_id}"): ("admin", {}),
    ("POST", "/api/v1/documents"): ("editor", {"fields": {"scope": "{scope}"}}),
    ("GET", "/api/v1/jobs"): ("editor", {"query": "?scope={scope}"}),
    ("GET", "/api/v1/jobs/{job_id}"): ("editor", {}),
    ("PUT", "/api/v1/documents/{scope}/{document_id}/audiences"): (
        "editor",
        {"json": {"audiences": []}},
    ),
    ("DELETE", "/api/v1/documents/{scope}/{document_id}"): (
        "editor",
        {"document": "nobody", "query": "?reason=test"},
    ),
    ("POST", "/api/v1/documents/{scope}/{document_id}/restore"): ("editor", {}),
    ("GET", "/api/v1/reviews"): ("editor", {"query": "?scope={scope}"}),
    ("POST", "/api/v1/reviews/{scope}/{document_id}/release"): (
        "editor",
        {"json": LOOKED_AT},
    ),
    ("POST", "/api/v1/reviews/{scope}/{document_id}/reject"): (
        "editor",
        {"json": LOOKED_AT},
    ),
    ("GET", "/api/v1/evaluations"): ("editor", {"query": "?scope={scope}"}),
    ("GET", "/api/v1/evaluations/{scope}/{run_id}"): ("editor", {}),
    ("GET", "/api/v1/watches"): ("editor", {"query": "?scope={scope}"}),
    ("POST", "/api/v1/watches"): ("editor", {"json": {"url": "nothing", "scope": "{scope}"}}),
    ("PATCH", "/api/v1/watches/{watch_id}"): ("editor", {"json": {"state": "paused"}}),
    ("DELETE", "/api/v1/watches/{watch_id}"): ("editor", {}),
    ("GET", "/api/v1/keys"): ("admin", {}),
    ("POST", "/api/v1/keys"): (
        "admin",
        {"json": {"name": "made by the matrix", "role": "viewer", "scopes": ["{scope}"]}},
    ),
    ("POST", "/api/v1/keys/{key_id}/rotate"): ("admin", {}),
    ("DELETE", "/api/v1/keys/{key_id}"): ("admin", {}),
    ("GET", "/api/v1/members"): ("admin", {}),
    ("PUT", "/api/v1/members/{subject}"): (
        "admin",
        {"json": {"role": "viewer", "scopes": ["{scope}"]}},
    ),
    ("DELETE", "/api/v1/members/{subject}"): ("admin", {}),
}
CALLERS = ("nobody", "viewer", "editor", "admin", "system")
NAMES_A_SCOPE = [
    (row, caller)
    for row, (role, call) in ROWS.items()
    for caller in CALLERS[1:]
    if "{scope}" in f"{row}{call}" and Role[caller.upper()] >= Role[role.upper()]
]


def flat(found: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Routes, those of included routers too (which newer FastAPI keeps apart)."""
    for route in found:
        included = getattr(route, "original_router", None)
        if included is None:
            yield route
        else:
            yield from flat(included.routes)


def routes(app: FastAPI) -> Iterator[tuple[str, str, BaseRoute]]:
    """Every method and path the application answers."""
    for route in flat(app.routes):
        if isinstance(route, Mount):
            yield "MOUNT", route.path, route
        else:
            for method in getattr(route, "methods", None) or ("ANY",):
                if method != "HEAD":
                    yield method, route.path.replace(":path}", "}"), route  # type: ignore[attr-defined]


@pytest.mark.requirement("P-54")
def test_every_route_has_a_row_and_every_row_a_route(served: Served) -> None:
    found = {(method, path) for method, path, _ in routes(served.app)}
    assert found == set(ROWS)


def test_what_a_route_asks_for_is_what_its_row_says(served: Served) -> None:
    for method, path, route in routes(served.app):
        if isinstance(route, APIRoute):
            needed = [
                d.call.role for d in route.dependant.dependencies if isinstance(d.call, Needs)
            ]
            said = ROWS[method, path][0]
            assert [role.label for role in needed] == ([] if said == OPEN else [said]), path


def call(served: Served, row: tuple[str, str], key: str | None, scope: str) -> Any:
    """Call a route for a scope; with what is missing, so that nothing is changed for others."""
    method, path = row
    extra = dict(ROWS[row][1])
    document = extra.pop("document", "nobody" if method != "GET" else "leave")
    if scope != "acme" and "fields" in extra:
        extra["fields"] = {**extra["fields"], "file": ("notes.md", b"# Notes")}
    filled = (
        path.replace("{scope}", scope)
        .replace("{document_id}", document)
        .replace("{version}", "1")
        .replace("{passage_id}", "none")
        .replace("{job_id}", "0" * 24)
        .replace("{key_id}", "0" * 12)
        .replace("{watch_id}", "0" * 12)
        .replace("{run_id}", "0" * 16)
        .replace("{subject}", "somebody")
        .replace("{citation_id}", "none")
        .replace("{correlation_id}", "none")
        .replace("{erasure_id}", "none")
    ) + extra.pop("query", "").replace("{scope}", scope)
    for name in ("json", "fields"):
        if name in extra:
            extra[name] = _filled(extra[name], scope)
    if method == "MOUNT":
        method, filled = "GET", f"{filled}/page.css"
    elif method == "ANY":
        method = "DELETE"
    return served.client.with_key(key)(method, filled, **extra)


def _filled(value: Any, scope: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(item, scope) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, scope) for item in value]
    return scope if value == "{scope}" else value


@pytest.mark.requirement("P-54", "P-52")
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_each_cell_of_the_matrix(
    served: Served, installation: Installation, row: tuple[str, str], caller: str
) -> None:
    needed = ROWS[row][0]
    answer = call(served, row, installation.keys.get(caller), "acme")
    assert answer.status < 500
    if needed == OPEN:
        assert (
            row == ("POST", "/auth/session")
            or answer.status not in (401, 403)
            or (row == ("GET", "/auth/callback"))
        )
    elif caller == "nobody":
        assert answer.status == 401
        assert answer.json["code"] == "unauthenticated"
    elif Role[caller.upper()] < Role[needed.upper()]:
        assert answer.status == 403
        assert answer.json["code"] == "forbidden"
    else:
        assert answer.status not in (401, 403), answer.text


@pytest.mark.requirement("P-54", "O-50")
@pytest.mark.parametrize(("row", "caller"), NAMES_A_SCOPE)
def test_a_scope_that_is_not_ones_own_is_as_good_as_none(
    served: Served, installation: Installation, row: tuple[str, str], caller: str
) -> None:
    there = call(served, row, installation.keys[caller], "other")
    nowhere = call(served, row, installation.keys[caller], "nowhere")
    assert there.status == nowhere.status
    assert there.status in (403, 404), there.text
    assert there.json["code"] == nowhere.json["code"]
