"""One line, many doors: the same bytes give the same rows, whichever way they came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kb.ingesting import Options, ingest_paths
from kb_assets.folders.cursor import Cursor
from kb_assets.folders.sensor import WatchedFolder, look_at_folder
from kb_resources.acquire.stored import stored_uri
from kb_resources.model import DocumentKey, Source, SourceKind
from kb_resources.stages.request import IngestRequest

if TYPE_CHECKING:
    from tests.integration.watch.conftest import Watching

PAGE = b"""<!doctype html><html lang="en"><head><title>Leave</title>
<meta name="author" content="Ada Byron"></head><body><h1>Leave</h1>
<p>Every employee has thirty days of paid annual leave in a calendar year.</p>
<table><tr><th>Years</th><th>Days</th></tr><tr><td>1</td><td>30</td></tr></table></body></html>"""

# What differs by nature: row numbers, times, scope, where it came from, and ids made of that.
_BY_NATURE = frozenset(
    {
        *("document_key", "version_key", "passage_key", "scope_id", "finding_id", "validity_key"),
        *("created_at", "updated_at", "verdict_at", "finished_at", "duration_s", "valid", "known"),
        *("valid_from", "document_id", "passage_id", "source_kind", "source_uri", "origin"),
        *("settled_fingerprint", "fingerprint", "output", "details", "verdict_actor", "keys"),
        *("lifecycle_id", "at", "actor", "hash", "previous_hash"),
    }
)
_TABLES = (
    *("document", "version", "parsed", "extraction", "finding", "stage_result", "passage", "lex"),
    *("embedding", "validity", "lifecycle"),
)


def by_folder(watching: Watching) -> list[DocumentKey]:
    root = watching.bench.folder / "zone"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "leave.html").write_bytes(PAGE)
    watched = WatchedFolder("zone", root, settle_s=0.0)
    return look_at_folder(watching.bench.line, watched, Cursor(), frozenset()).keys


def by_bytes(watching: Watching, kind: SourceKind) -> list[DocumentKey]:
    """As the HTTP side's worker does with an upload or a call."""
    line, scope = watching.bench.line, kind.value
    digest = line.capabilities.blobs(scope).put(PAGE)
    source = Source(kind, stored_uri(scope, digest, "leave.html"), "leave.html")
    return [line.register(IngestRequest(scope=scope, source=source, actor="test"))]


def by_watch(watching: Watching) -> list[DocumentKey]:
    watching.site.routes["/leave.html"] = lambda asked: asked.reply(
        body=PAGE, Content_Type="text/html; charset=utf-8"
    )
    watching.watch("/leave.html", scope="watch")
    return list(watching.check().keys)


def by_address(watching: Watching) -> list[DocumentKey]:
    """An address ingested once, without a watch: the line fetches it itself."""
    url = watching.site.url("/leave.html")
    request = IngestRequest(scope="address", source=Source(SourceKind.URL, url, url), actor="test")
    return [watching.bench.line.register(request)]


def rows_of(watching: Watching, key: DocumentKey) -> dict[str, Any]:
    """Everything the ledger and the retrieval tables hold of a scope's only document."""
    found: dict[str, Any] = {}
    with watching.bench.line.capabilities.database.transaction("owner") as conn:
        for table in _TABLES:
            rows = conn.execute(
                f"select to_jsonb(t) from kb.{table} t join kb.scope s "
                f"on s.scope_id = t.scope_id where s.name = %s",
                [key.scope],
            ).fetchall()
            kept = [{k: v for k, v in row[0].items() if k not in _BY_NATURE} for row in rows]
            for row in kept:
                if row.get("stage") == "scan":
                    del row["counts"]["scanned_bytes"]  # the scan reads the origin too
            found[table] = sorted(kept, key=repr)
    return found


@pytest.mark.requirement("P-01")
def test_the_same_bytes_by_every_door_give_the_same_rows(watching: Watching) -> None:
    keys = [
        *by_folder(watching),
        *by_bytes(watching, SourceKind.UPLOAD),
        *by_bytes(watching, SourceKind.API),
        *by_watch(watching),
        *by_address(watching),
    ]
    assert [key.scope for key in keys] == ["folder", "upload", "api", "watch", "address"]
    watching.bench.line.run_all(keys)
    file = watching.bench.write("leave.html", PAGE)
    (ingested,) = ingest_paths(
        [file], Options(scope="file", through_dagster=False), settings=watching.bench.settings
    )
    keys.append(DocumentKey("file", ingested.document_id))

    first = rows_of(watching, keys[0])
    assert first["document"][0]["state"] == "indexed"
    assert len(first["embedding"]) == len(first["passage"]) == 1
    for key in keys[1:]:
        found = rows_of(watching, key)
        for table in _TABLES:
            assert found[table] == first[table], (key, table)


@pytest.mark.requirement("P-02")
def test_an_address_ingested_again_does_no_work(watching: Watching) -> None:
    by_watch(watching)
    (key,) = by_address(watching)
    watching.bench.line.run_all([key])
    watching.bench.counters.clear()
    watching.bench.line.run_all([key])
    assert watching.bench.counters == {}


@pytest.mark.requirement("P-49")
def test_an_address_that_may_not_be_fetched_ends_with_what_to_do(watching: Watching) -> None:
    url = "http://169.254.169.254/latest/meta-data/"
    source = Source(SourceKind.URL, url, url)
    key = watching.bench.line.register(IngestRequest(scope="acme", source=source, actor="test"))
    watching.bench.line.run_all([key])
    state, reason = watching.bench.state(key)
    assert state == "failed"
    assert "special network" in reason
