"""What ports offer: typed in full, nothing past the scope, and citations in one published shape."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb.http.routes.ask import CitationOut
from kb.http.routes.citations import CitationKept
from kb.http.schemas import HitOut
from kb_resources.embed.identity import Embedder
from kb_resources.embed.onnx_embedder import OnnxEmbedder
from kb_resources.embed.remote import RemoteEmbedder
from kb_resources.store.contract import KnowledgeStore, ScopeRegistry
from kb_resources.store.migrate import migrate
from kb_resources.store.server import EmbeddedServer
from tests.integration.line.conftest import bench, models_dir, settings

__all__ = ["bench", "models_dir", "settings"]
ROOT = Path(__file__).parents[2]


@pytest.mark.requirement("W-21")
@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_no_public_name_of_a_store_leads_past_the_scope(make_store: Any, kind: str) -> None:
    store, _, _ = make_store(kind)
    contract = {name for name in vars(KnowledgeStore) if not name.startswith("_")}
    offered = {name for name in dir(store.pinned_to("acme")) if not name.startswith("_")}
    assert offered == contract | {"pinned_to"}
    registry = {name for name in vars(ScopeRegistry) if not name.startswith("_")}
    assert {name for name in dir(store.scopes) if not name.startswith("_")} == registry


@pytest.mark.requirement("W-43")
@pytest.mark.parametrize("port", [KnowledgeStore, ScopeRegistry, Embedder])
def test_every_port_says_the_type_of_all_it_takes_and_gives(port: type[Any]) -> None:
    for name, member in vars(port).items():
        if name.startswith("_") or not inspect.isfunction(member):
            continue
        signature = inspect.signature(member)
        said = [each.annotation for each in signature.parameters.values() if each.name != "self"]
        for annotation in (*said, signature.return_annotation):
            assert annotation is not inspect.Signature.empty, name
            assert "Any" not in str(annotation), name


@pytest.mark.requirement("B-08")
@pytest.mark.parametrize("kind", [OnnxEmbedder, RemoteEmbedder])
def test_every_embedder_has_a_model_embeds_values_and_stops_when_told(kind: type[Any]) -> None:
    for name in ("model_id", "identity", "embed", "embed_detailed"):
        assert hasattr(kind, name), name
    assert "should_stop" in inspect.signature(kind.embed_detailed).parameters


@pytest.mark.requirement("W-24")
def test_setting_up_twice_is_once_and_destroying_leaves_nothing(
    new_server: Callable[..., EmbeddedServer], open_folder: Path
) -> None:
    server = new_server()
    server.start()
    assert migrate(server.dsn("owner")) != ()
    assert migrate(server.dsn("owner")) == ()
    status = server.status()
    assert status.data_dir is not None
    assert status.socket_dir is not None
    server.destroy()
    assert not status.data_dir.exists()
    assert not status.socket_dir.exists()
    assert not list((open_folder / "home").rglob("PG_VERSION"))


CITED = {"scope", "document_id", "version", "digest", "passage_id", "page"}
SPAN = {"char_start", "char_end", "byte_start", "byte_end"}


@pytest.mark.requirement("O-08")
def test_a_citation_names_version_bytes_page_and_span_in_a_published_schema() -> None:
    published = json.loads((ROOT / "docs/reference/openapi.json").read_text("utf-8"))["components"]
    for shape, needed in (
        (HitOut, CITED | SPAN),
        (CitationOut, CITED | SPAN | {"quote"}),
        (CitationKept, CITED | {"quote", "selector"}),
    ):
        fields = set(shape.model_json_schema()["properties"])
        assert needed <= fields, shape.__name__
        assert set(published["schemas"][shape.__name__]["properties"]) == fields


@pytest.mark.requirement("O-08")
def test_a_citation_survives_json_and_its_digest_is_that_of_the_stored_bytes(bench: Any) -> None:
    source = b"# Leave\n\nAnnual leave is 25 working days; it ends in March.\n"
    key = bench.ingest("leave.md", source)
    [hit] = bench.search("annual leave", mode="text").hits
    blobs = bench.line.capabilities.blobs("acme")
    assert hit.digest == hashlib.sha256(source).hexdigest()
    assert hashlib.sha256(blobs.get(hit.digest)).hexdigest() == hit.digest
    sent = HitOut.model_validate(hit.to_json())
    back = HitOut.model_validate_json(sent.model_dump_json())
    assert back == sent
    assert (back.document_id, back.version, back.digest) == (key.document_id, 1, hit.digest)
    [(body,)] = _bodies(bench)
    assert body.encode()[back.byte_start : back.byte_end].decode() == hit.text


def _bodies(bench: Any) -> list[tuple[str]]:
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        return conn.execute("select body from kb.parsed").fetchall()
