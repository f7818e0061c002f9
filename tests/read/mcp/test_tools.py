"""The MCP server as the SDK's own client sees it: over HTTP, standard streams, in process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from kb.mcp import create_server, http_app
from kb.reader import Reader
from kb_resources import embed
from kb_resources.errors import PolicyError
from kb_resources.model import Principal
from kb_resources.retrieve import relevance
from kb_resources.retrieve.relevance import Calibration
from tests.integration.search.conftest import World
from tests.read.mcp.conftest import HANDBOOK

ROOT = Path(__file__).parents[3]
TOOLS = {"search", "passage_context", "document_outline", "cite_check"}

Talk = Callable[[Client], Awaitable[Any]]


def principal(world: World, *audiences: str) -> Principal:
    return Principal("test:model", frozenset(audiences), scopes=frozenset({world.scope}))


def talk(reader: Reader, who: Principal, talking: Talk) -> Any:
    """Talk to a server in this process."""

    async def run() -> Any:
        async with Client(create_server(reader, lambda _request: who)) as client:
            return await talking(client)

    return asyncio.run(run())


def data(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The app behind a real port, by its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 240
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.requirement("B-25", "P-24")
def test_a_client_over_http_finds_reads_and_checks(library: World, reader: Reader) -> None:
    def who(request: Request | None) -> Principal:
        assert request is not None
        names = request.headers.get("x-audiences", "")
        return principal(library, *names.split())

    app, running = http_app(create_server(reader, who, scopes=[library.scope]))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> Any:
        async with running():
            yield

    async def run(url: str) -> None:
        async with Client(f"{url}/mcp") as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            assert library.scope in (client.instructions or "")
            found = data(
                await client.call_tool("search", {"query": "lost device", "scope": library.scope})
            )
            first = found["passages"][0]
            assert first["text"] == HANDBOOK[0]
            assert first["rank"] == 1
            assert found["correlation_id"]
            around = data(
                await client.call_tool(
                    "passage_context",
                    {"passage_id": first["passage_id"], "scope": library.scope, "after": 1},
                )
            )
            assert around["passage"]["text"] == HANDBOOK[0]
            assert [item["text"] for item in around["after"]] == [HANDBOOK[1]]
            outline = data(
                await client.call_tool(
                    "document_outline", {"document_id": "handbook", "scope": library.scope}
                )
            )
            assert first["passage_id"] in [
                one for section in outline["sections"] for one in section["passage_ids"]
            ]
            checked = data(
                await client.call_tool(
                    "cite_check",
                    {
                        "quote": "report a lost  device within one hour",
                        "passage_id": first["passage_id"],
                        "scope": library.scope,
                    },
                )
            )
            assert checked["accepted"]
            assert checked["quote"] == "report a lost device within one hour"
            assert checked["status"] == "stands"

    with serving(Starlette(routes=[Mount("/", app)], lifespan=lifespan)) as url:
        asyncio.run(run(url))


@pytest.mark.requirement("B-25")
def test_a_client_over_standard_streams_finds(library: World, tmp_path: Path, server: Any) -> None:
    models = ROOT / ".kb" / "models"
    embed.prepare(models, embed.DEFAULT_MODEL)
    with library.pipeline() as conn:
        name = conn.execute("select current_database()").fetchone()[0]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("KB_")}
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kb.cli", "mcp", "--scope", library.scope],
        env=kept
        | {
            "KB_HOME": str(tmp_path / "home"),
            "KB_MODELS_DIR": str(models),
            "KB_DATABASE_URL": server.dsn("owner", name),
        },
        cwd=str(ROOT),
    )

    async def run() -> None:
        async with Client(parameters, read_timeout_seconds=60) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            found = data(
                await client.call_tool("search", {"query": "lost device", "scope": library.scope})
            )
            assert found["passages"][0]["text"] == HANDBOOK[0]
            refused = await client.call_tool("search", {"query": "lost", "scope": "elsewhere"})
            assert refused.is_error

    asyncio.run(run())


def test_a_model_is_told_when_nothing_relevant_was_found(
    library: World, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def talking(client: Client) -> tuple[bool, int]:
        asked = {"query": "lost device", "scope": library.scope}
        found = data(await client.call_tool("search", asked))
        return found["nothing_relevant"], len(found["passages"])

    told, passages = talk(reader, principal(library), talking)
    assert (told, passages > 0) == (False, True)
    unsure = Calibration("tiny", "hybrid", -50.0, 0.0, 0.0, nothing_below=0.3)
    monkeypatch.setattr(relevance, "calibrations", lambda: (unsure,))
    assert talk(reader, principal(library), talking) == (True, passages)


@pytest.mark.requirement("P-23")
def test_a_model_may_demand_every_word(library: World, reader: Reader) -> None:
    async def talking(client: Client) -> list[list[str]]:
        asked = {"query": "lost device within the hour", "scope": library.scope}
        found = [
            data(await client.call_tool("search", {**asked, **more}))
            for more in ({}, {"words": "all"}, {"words": "all", "query": "lost salaries"})
        ]
        return [[passage["text"] for passage in one["passages"]] for one in found]

    usual, every, none = talk(reader, principal(library), talking)
    assert (len(usual) > 1, every, none) == (True, HANDBOOK[:1], [])


def test_no_tool_gives_scores_or_the_indexed_context(library: World, reader: Reader) -> None:
    async def talking(client: Client) -> None:
        result = await client.call_tool("search", {"query": "annual leave", "scope": library.scope})
        said = json.dumps(data(result)) + "".join(part.text for part in result.content)  # type: ignore[union-attr]
        for word in ("score", "cosine", "text_rank", "vector_rank", '"context"', "audiences"):
            assert word not in said

    talk(reader, principal(library), talking)


def test_a_passage_shows_to_holders_of_its_audience_only(library: World, reader: Reader) -> None:
    async def talking(client: Client) -> list[str]:
        asked = {"query": "lost harbour island", "scope": library.scope}
        found = data(await client.call_tool("search", asked))
        return [passage["document_id"] for passage in found["passages"]]

    assert "memo" not in talk(reader, principal(library), talking)
    assert talk(reader, principal(library, "board"), talking)[0] == "memo"


def test_a_scope_the_principal_lacks_does_not_exist_for_it(library: World, reader: Reader) -> None:
    other = Principal("test:model", scopes=frozenset({"other"}))

    async def talking(client: Client) -> list[str]:
        asked: list[tuple[str, dict[str, Any]]] = [
            ("search", {"query": "leave"}),
            ("passage_context", {"passage_id": "handbook.x.y.0"}),
            ("document_outline", {"document_id": "handbook"}),
            ("cite_check", {"passage_id": "handbook.x.y.0", "quote": "Annual leave is 25"}),
        ]
        results = [await client.call_tool(n, a | {"scope": library.scope}) for n, a in asked]
        assert all(result.is_error for result in results)
        return [result.content[0].text for result in results]  # type: ignore[union-attr]

    said = talk(reader, other, talking)
    assert all("[not_found]" in text for text in said)


def test_an_error_says_what_to_do_and_nothing_of_the_inside(library: World, reader: Reader) -> None:
    async def talking(client: Client) -> None:
        bad = await client.call_tool(
            "search", {"query": "x", "scope": library.scope, "as_of": "soon"}
        )
        assert bad.is_error
        assert "Write 2026-01-31" in bad.content[0].text  # type: ignore[union-attr]
        wide = await client.call_tool("search", {"query": "x", "scope": library.scope, "k": 10_000})
        assert wide.is_error
        none = await client.call_tool("search", {"query": "x"})
        assert none.is_error

    talk(reader, principal(library), talking)

    def refuses(_request: Request | None) -> Principal:
        raise PolicyError("The key has expired.", next_step="Ask for a new one.")

    async def refused() -> str:
        async with Client(create_server(reader, refuses)) as client:
            result = await client.call_tool("search", {"query": "x", "scope": library.scope})
            assert result.is_error
            return str(result.content[0].text)  # type: ignore[union-attr]

    assert "The key has expired. Ask for a new one." in asyncio.run(refused())


def test_a_quote_that_does_not_stand_is_refused_with_its_reason(
    library: World, reader: Reader
) -> None:
    async def talking(client: Client) -> dict[str, Any]:
        asked = {"query": "lost device", "scope": library.scope}
        first = data(await client.call_tool("search", asked))["passages"][0]
        place = {"passage_id": first["passage_id"], "scope": library.scope}
        quotes = {
            "absent": "Employees may keep a lost device",
            "too_short": "lost device",
            "stitched": "Employees must report a lost device [...] are never punished",
        }
        return {
            reason: data(await client.call_tool("cite_check", place | {"quote": quote}))
            for reason, quote in quotes.items()
        }

    for reason, result in talk(reader, principal(library), talking).items():
        assert not result["accepted"]
        assert result["reason"] == reason
        assert result["message"]


def test_a_tool_takes_no_more_than_it_looks_at_and_advises_no_command(
    library: World, reader: Reader
) -> None:
    async def talking(client: Client) -> list[CallToolResult]:
        place = {"passage_id": "nothing", "scope": library.scope}
        return [
            await client.call_tool("cite_check", place | {"quote": "leave " * 400_000}),
            await client.call_tool("search", {"query": "x" * 8001, "scope": library.scope}),
            await client.call_tool("passage_context", place),
        ]

    long_quote, long_query, nothing = talk(reader, principal(library), talking)
    assert long_quote.is_error
    assert long_query.is_error
    assert nothing.is_error
    told = str(nothing.content[0].text)  # type: ignore[union-attr]
    assert "[not_found]" in told
    assert "kb documents" not in told
