"""What may go to an embedding endpoint that is not one's own: nothing, until its owner says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kb_resources.answer.disclosure import EmbeddingGate
from kb_resources.embed.remote import HttpTransport, RemoteEmbedder, probe_endpoint
from kb_resources.errors import NotFound, PolicyError
from kb_resources.model import DocumentState, Principal, Stage
from kb_resources.retrieve import Retriever
from kb_resources.retrieve.log import RetrievalLog
from kb_resources.stages import embed as embed_stage
from kb_resources.store import logs
from kb_resources.store.pool import Database
from tests.integration.answer.conftest import KEY
from tests.integration.embed.fake_server import FakeServer, running
from tests.integration.embed.test_remote import IDENTITY
from tests.integration.line.conftest import Bench, bench, models_dir, settings
from tests.integration.search.conftest import World

__all__ = ["bench", "models_dir", "settings"]

WHO = Principal("test:ann")


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with running(FakeServer()) as server:
        yield server


def remote(fake: FakeServer) -> RemoteEmbedder:
    transport = HttpTransport(timeout_s=10)
    endpoint = fake.endpoint()
    made = RemoteEmbedder(
        IDENTITY, endpoint, probe_endpoint(endpoint, transport, IDENTITY), transport
    )
    fake.requests.clear()
    return made


def decisions(database: Database, scope: str) -> list[tuple[Any, ...]]:
    with database.transaction("app", scope) as conn:
        return conn.execute(
            "select purpose, hosting, content_class, decision from kb.disclosure_log order by at"
        ).fetchall()


@pytest.mark.requirement("O-39")
def test_a_confidential_question_is_not_embedded_elsewhere(world: World, fake: FakeServer) -> None:
    world.publish("leave", ["Annual leave is 25 working days."])
    embedder = remote(fake)

    def search(declared: str, mode: str = "hybrid", scope: str = world.scope) -> Any:
        retriever = Retriever(
            world.database,
            embedder=lambda: embedder,
            log=RetrievalLog(KEY),
            gate=EmbeddingGate(world.database, KEY, declared),
        )
        return retriever.search("annual leave", scope=scope, principal=WHO, mode=mode)

    found = search("external")
    assert found.mode == "text"
    assert [hit.document_id for hit in found.hits] == ["leave"]
    with pytest.raises(PolicyError) as caught:
        search("external", "vector")
    assert caught.value.code == "disclosure_blocked"
    with pytest.raises(NotFound):
        search("external", scope="nowhere")
    assert fake.requests == []
    blocked = ("embed_question", "external", "confidential", "blocked")
    assert decisions(world.database, world.scope) == [blocked, blocked]
    search("auto")  # the fake server is on this machine
    assert len(fake.requests) == 1
    with world.pipeline() as conn:
        logs.set_content_class(conn, world.scope, None, "public")
    search("external")
    assert len(fake.requests) == 2
    assert decisions(world.database, world.scope)[2:] == [
        ("embed_question", "self_hosted", "confidential", "allowed"),
        ("embed_question", "external", "public", "allowed"),
    ]


@pytest.mark.requirement("O-39")
def test_a_confidential_document_is_not_embedded_elsewhere(
    bench: Bench, database: Database, fake: FakeServer
) -> None:
    embedder = remote(fake)
    caps = replace(bench.line.capabilities, embedder=lambda: embedder, embed_hosting="external")
    line = type(bench.line)(caps, ("en",))
    bench.write("leave.md", "# Leave\n\nEvery employee has thirty days of paid annual leave.\n")
    key = line.register(bench.request("leave.md"))
    for stage in (Stage.ACQUIRE, Stage.PARSE, Stage.LANGUAGE, Stage.SCAN, Stage.CHUNK):
        list(line.run_stage(stage, [key]))

    def embed() -> Any:
        ((_, report),) = embed_stage.run_many(caps, line.rows([key]))
        return report

    refused = embed()
    assert refused.refused
    assert "KB_EMBED_HOSTING" in refused.reason
    assert fake.requests == []
    assert line.rows([key])[0].state == DocumentState.PENDING
    with database.transaction("pipeline") as conn:
        logs.set_content_class(conn, "acme", key.document_id, "public")
    assert not embed().refused
    assert len(fake.requests) == 1
    assert decisions(database, "acme") == [
        ("embed_passages", "external", "confidential", "blocked"),
        ("embed_passages", "external", "public", "allowed"),
    ]
