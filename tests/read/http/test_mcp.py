"""The MCP server behind the HTTP side's keys, with the SDK's own client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.read.http.conftest import Installation, Served

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def search(served: Served, key: str, query: str, scope: str = "acme") -> Any:
    """Call the tool `search` with a key, as a model's host would."""

    async def run() -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with create_mcp_http_client(headers=headers) as http:
            transport = streamable_http_client(f"{served.client.base}/mcp", http_client=http)
            async with McpClient(transport) as client:
                return await client.call_tool("search", {"query": query, "scope": scope})

    return asyncio.run(run())


@pytest.mark.requirement("B-25")
def test_a_model_finds_what_its_key_may_read(served: Served, installation: Installation) -> None:
    found = search(served, installation.keys["viewer"], "annual leave")
    assert {item["document_id"] for item in found.structured_content["passages"]} == {"leave"}
    hidden = search(served, installation.keys["viewer"], "merger with Contoso")
    assert "October" not in str(hidden.structured_content)
    shown = search(served, installation.keys["red"], "merger with Contoso")
    assert "October" in str(shown.structured_content)


def test_a_model_uses_no_scope_but_its_keys(served: Served, installation: Installation) -> None:
    found = search(served, installation.keys["viewer"], "canteen", scope="other")
    assert found.is_error
    assert "dumplings" not in str(found)


def test_a_browsers_session_does_not_open_the_tools(
    served: Served, installation: Installation
) -> None:
    browser = served.client.sign_in(installation.keys["viewer"])
    assert browser("GET", "/api/v1/me").status == 200
    answer = browser("POST", "/mcp", json=INITIALIZE, headers=ACCEPT)
    assert (answer.status, answer.json["code"]) == (401, "unauthenticated")


def test_there_is_no_stream_to_wait_on(served: Served, installation: Installation) -> None:
    """A server without sessions would hold it open for ever; MCP has 405 for that."""
    viewer = served.client.with_key(installation.keys["viewer"])
    for method in ("GET", "DELETE"):
        answer = viewer(method, "/mcp", headers=ACCEPT)
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert answer.json["code"] == "method_not_allowed"
    assert served.client("GET", "/mcp", headers=ACCEPT).status == 401
