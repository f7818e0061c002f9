"""The retrievers of LangChain and LlamaIndex, run by those libraries; the awaited client."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb import AsyncKnowledgeBase, KnowledgeBase
from kb_resources import embed
from kb_resources.errors import NotFound, ScopeRequired
from kb_resources.settings import load_settings
from kb_resources.store.server import EmbeddedServer
from tests.integration.answer.conftest import answer_database, world
from tests.integration.search.conftest import World

__all__ = ["answer_database", "world"]

ROOT = Path(__file__).parents[3]
LEAVE = "Annual leave is 25 working days."


@pytest.fixture
def settings(world: World, server: EmbeddedServer, tmp_path: Path) -> Any:
    """An installation on the test's database, with one document for all and one for the board."""
    world.publish("leave", [LEAVE, "Sick notes are due on day three."])
    world.publish("memo", ["Annual leave of the board is unlimited."], audiences=["board"])
    models = ROOT / ".kb" / "models"
    embed.prepare(models, embed.DEFAULT_MODEL)
    with world.pipeline() as conn:
        name = conn.execute("select current_database()").fetchone()[0]
    return load_settings(
        {
            "KB_HOME": str(tmp_path / "home"),
            "KB_MODELS_DIR": str(models),
            "KB_DATABASE_URL": server.dsn("owner", name),
        }
    )


@pytest.fixture
def knowledge(settings: Any) -> Iterator[KnowledgeBase]:
    with KnowledgeBase(settings, principal_id="test:adapter") as opened:
        yield opened


@pytest.mark.requirement("B-25")
def test_langchain_retrieves_documents_to_cite(world: World, knowledge: KnowledgeBase) -> None:
    from langchain_core.runnables import RunnableLambda

    from kb.adapters.langchain import KbRetriever

    retriever = KbRetriever(knowledge_base=knowledge, scope=world.scope, k=2, mode="text")
    found = retriever.invoke("How long is annual leave?")
    assert found[0].page_content == LEAVE
    about = found[0].metadata
    assert found[0].id == about["passage_id"]
    assert about["rank"] == 1
    assert about["deep_link"].startswith(f"/#/d/{world.scope}/leave?v=1")
    assert about["correlation_id"]
    assert not {"score", "context", "text"} & about.keys()
    chain = retriever | RunnableLambda(lambda documents: [d.page_content for d in documents])
    assert LEAVE in chain.invoke("annual leave")
    assert [d.page_content for d in asyncio.run(retriever.ainvoke("annual leave"))] == [
        d.page_content for d in retriever.invoke("annual leave")
    ]
    for batch in retriever.batch(["annual leave", "sick notes"]):
        assert batch


@pytest.mark.requirement("B-25")
def test_llamaindex_retrieves_nodes_to_cite(world: World, knowledge: KnowledgeBase) -> None:
    from llama_index.core.schema import MetadataMode

    from kb.adapters.llamaindex import KbRetriever

    retriever = KbRetriever(knowledge, scope=world.scope, k=2, mode="text")
    found = retriever.retrieve("How long is annual leave?")
    assert found[0].node.get_content(MetadataMode.NONE) == LEAVE
    assert found[0].score is None
    assert found[0].node.metadata["document_id"] == "leave"
    again = asyncio.run(retriever.aretrieve("How long is annual leave?"))
    assert [node.node.node_id for node in again] == [node.node.node_id for node in found]


def test_adapters_read_as_the_audiences_they_are_given(
    world: World, knowledge: KnowledgeBase
) -> None:
    from kb.adapters.langchain import KbRetriever

    def documents(*audiences: str) -> set[str]:
        retriever = KbRetriever(
            knowledge_base=knowledge, scope=world.scope, audiences=audiences, mode="text"
        )
        return {found.metadata["document_id"] for found in retriever.invoke("annual leave")}

    assert documents() == {"leave"}
    assert documents("board") == {"leave", "memo"}


@pytest.mark.parametrize("words", ["any", "all", "all_first"])
def test_adapters_demand_the_words_that_search_would(
    world: World, knowledge: KnowledgeBase, words: str
) -> None:
    from llama_index.core.schema import MetadataMode

    from kb.adapters.langchain import KbRetriever as Langchain
    from kb.adapters.llamaindex import KbRetriever as LlamaIndex

    given: dict[str, Any] = {"scope": world.scope, "mode": "text", "words": words}
    documents = Langchain(knowledge_base=knowledge, **given).invoke("annual days")
    nodes = LlamaIndex(knowledge, **given).retrieve("annual days")
    texts = [document.page_content for document in documents]
    assert texts == [node.node.get_content(MetadataMode.NONE) for node in nodes]
    assert texts == [LEAVE] if words == "all" else len(texts) == 2
    assert texts[0] == LEAVE


def test_without_its_framework_an_adapter_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['langchain_core'] = None; sys.modules['llama_index'] = None\n"
        "import kb.adapters\n"
        "for name in ('langchain', 'llamaindex'):\n"
        "    try:\n"
        "        __import__(f'kb.adapters.{name}')\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "pip install langchain-core" in done.stdout
    assert "pip install llama-index-core" in done.stdout


def test_the_awaited_client_answers_many_at_once(world: World, settings: Any) -> None:
    async def run() -> None:
        async with AsyncKnowledgeBase(settings, threads=4) as kb:
            asked = [kb.search("annual leave", scope=world.scope, mode="text") for _ in range(12)]
            results = await asyncio.gather(*asked)
            assert {found.hits[0].text for found in results} == {LEAVE}
            assert len({found.correlation_id for found in results}) == 12
            answer = await kb.ask("How long is annual leave?", scope=world.scope)
            assert answer.statements[0].text == LEAVE
            context = await kb.context(results[0].hits[0].passage_id, scope=world.scope)
            assert context.passage.text == LEAVE
            trace = await kb.trace(answer.correlation_id, scope=world.scope)
            assert trace.answers
            with pytest.raises(NotFound):
                await kb.search("x", scope="nowhere", mode="text")
            with pytest.raises(ScopeRequired):
                await kb.search("x", scope="")

    asyncio.run(run())


def test_the_event_loop_goes_on_while_a_call_waits(settings: Any) -> None:
    import threading

    async def run() -> None:
        async with AsyncKnowledgeBase(settings) as kb:
            gate = threading.Event()
            waiting = asyncio.create_task(kb.run(lambda: gate.wait(20)))
            await asyncio.sleep(0)
            gate.set()
            assert await waiting

    asyncio.run(run())


def test_the_awaited_client_has_every_call_of_the_other() -> None:
    def calls(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")} - {"run", "close"}

    assert calls(AsyncKnowledgeBase) == calls(KnowledgeBase)
    for name in calls(KnowledgeBase):
        assert getattr(AsyncKnowledgeBase, name).__doc__ == getattr(KnowledgeBase, name).__doc__


def test_what_is_under_way_ends_before_the_connections_close(settings: Any) -> None:
    import threading

    async def run() -> None:
        kb = AsyncKnowledgeBase(settings, threads=2)
        said, gate = [], threading.Event()
        shut = kb.blocking.close
        kb.blocking.close = lambda: (said.append("closed"), shut())  # type: ignore[method-assign]
        call = asyncio.create_task(kb.run(lambda: (gate.wait(60), said.append("done"))))
        await asyncio.sleep(0)
        closing = asyncio.create_task(kb.close())
        for _ in range(100):  # nothing that could close waits for the call's own thread
            await asyncio.to_thread(lambda: None)
        gate.set()
        await closing
        await call
        assert said == ["done", "closed"]

    asyncio.run(run())
