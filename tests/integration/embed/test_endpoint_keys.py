"""API keys and headers of embedding endpoints: sent to their own host, shown nowhere."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kb_resources import embed
from kb_resources.compose_models import Model, Shelf, embedding_transport
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.embed.remote import Endpoint, HttpTransport
from kb_resources.errors import InputError, PolicyError
from kb_resources.settings import Settings, load_settings

from .fake_server import FakeServer, running

NAME = "bge-m3"
KEY, HEADER = "sk-very-secret-1", "tenant-very-secret-2"


def _settings(tmp_path: Path, hosts: str) -> Settings:
    return load_settings(
        {
            "KB_HOME": str(tmp_path),
            "KB_MODEL": NAME,
            "KB_EMBED_KEYS": f"{hosts}={KEY}",
            "KB_EMBED_HEADERS": f"{hosts}=X-Tenant: {HEADER}",
        }
    )


def _serves(fake: FakeServer) -> None:
    fake.vectors = lambda texts: HashingEmbedder(1024).embed(texts, "passage").tolist()


@pytest.mark.requirement("O-37", "P-61")
@pytest.mark.parametrize("dialect", ["openai", "tei"])
def test_key_and_headers_reach_the_endpoint_and_nothing_that_is_kept_or_shown(
    fake: FakeServer,
    tmp_path: Path,
    dialect: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    _serves(fake)
    settings = _settings(tmp_path, f"127.0.0.1:{fake.port}")
    transport = embedding_transport(settings)
    embed.prepare(settings.models_path, NAME, endpoint=fake.endpoint(dialect), transport=transport)
    own = Model(settings)
    own.embedder.embed(["one text"], "query")
    assert Shelf(settings, own).embedder(own.identity.model_id) is own.embedder
    embed.open_build(settings.models_path, own.identity.model_id, transport=transport)
    assert len(fake.requests) >= 4
    for _, headers, _ in fake.requests:
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert headers["X-Tenant"] == HEADER
    fake.replies = [(401, {})]
    with pytest.raises(PolicyError) as refused:
        own.embedder.embed(["one text"], "query")
    files = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    told = capfd.readouterr()
    seen = [*files, repr(settings), repr(transport), repr(refused.value), str(refused.value)]
    for text in [*seen, caplog.text, told.out, told.err]:
        assert KEY not in text
        assert HEADER not in text


def test_another_host_is_sent_neither(fake: FakeServer, tmp_path: Path) -> None:
    _serves(fake)
    with running(FakeServer(vectors=fake.vectors)) as other:
        settings = _settings(tmp_path, f"127.0.0.1:{other.port}")
        transport = embedding_transport(settings)
        assert transport is not None
        embed.prepare(tmp_path, NAME, endpoint=fake.endpoint(), transport=transport)
    assert fake.requests
    for _, headers, _ in fake.requests:
        assert not {"Authorization", "X-Tenant"} & set(headers)


def test_a_host_without_a_port_stands_for_all_of_its_ports(
    fake: FakeServer, tmp_path: Path
) -> None:
    _serves(fake)
    transport = embedding_transport(_settings(tmp_path, "127.0.0.1"))
    embed.prepare(tmp_path, NAME, endpoint=fake.endpoint(), transport=transport)
    assert fake.requests[0][1]["Authorization"] == f"Bearer {KEY}"


def test_without_keys_the_plain_transport_does() -> None:
    assert embedding_transport(load_settings({"KB_HOME": "/x"})) is None
    assert HttpTransport().by_host == {}


@pytest.mark.parametrize(
    "url", ["https://user:sk-1@host/v1", "https://sk-1@host/v1", "https://host/v1?key=sk-1"]
)
def test_an_address_that_holds_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InputError) as refused:
        Endpoint("openai", url)
    assert "sk-1" not in str(refused.value)
    assert "KB_EMBED_KEYS" in refused.value.next_step
