"""A docling-serve that is not one's own reads what its owner let go, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kb_resources.answer.disclosure import Destination
from kb_resources.parse import ParserPool
from kb_resources.parse.docling.serve import DoclingServe
from kb_resources.store import logs
from tests.integration.line.conftest import Bench
from tests.integration.parse.test_docling_serve import Stand, stand

__all__ = ["stand"]

SHEET = Path(__file__).parents[3] / "examples" / "sl" / "varstvo-pri-delu.pdf"


@pytest.mark.requirement("O-39")
def test_a_confidential_document_is_read_here(bench: Bench, stand: Stand) -> None:
    serve = DoclingServe(stand.url, sleep=lambda _s: None)
    with ParserPool(convert=serve.convert) as pool:
        caps = replace(
            bench.line.capabilities,
            parse=pool.parse,
            parse_at=Destination(stand.url, "docling-serve", "external"),
        )
        bench.line = replace(bench.line, capabilities=caps)
        kept = bench.ingest("kept.pdf", SHEET.read_bytes())
        assert bench.state(kept)[0] == "indexed"
        assert stand.asked == []
        assert any("defibrilator" in text for text in bench.texts("defibrilator"))

        with caps.database.transaction("pipeline") as conn:
            logs.set_content_class(conn, "acme", None, "public")
        sent = bench.ingest("sent.pdf", SHEET.read_bytes() + b"\n% another file\n")
        assert stand.asked
        letter = bench.ingest("letter.md", "# Leave\n\nThirty days of paid leave in a year.\n")
        with caps.database.transaction("app", "acme") as conn:
            rows = conn.execute(
                "select purpose, content_class, decision, parts->0->>'document_id'"
                " from kb.disclosure_log order by at"
            ).fetchall()
    assert rows == [
        ("parse", "confidential", "blocked", kept.document_id),
        ("parse", "public", "allowed", sent.document_id),
    ]
    assert letter.document_id not in str(rows)  # what is read here anyway is no disclosure
