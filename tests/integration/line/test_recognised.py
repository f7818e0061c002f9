"""Scans in the line: read and found, held for review when unsure, read once they can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kb_resources.compose import open_line
from kb_resources.stages import review
from tests.integration.parse.drawing import SAMPLES, page, png, scan

if TYPE_CHECKING:
    from tests.integration.line.conftest import Bench


@pytest.mark.requirement("P-03")
def test_a_clear_scan_is_published_and_an_unsure_one_waits_for_a_person(bench: Bench) -> None:
    from PIL import Image

    sharp = page(SAMPLES["eng"], SAMPLES["eng"])
    small = sharp.resize((sharp.width // 6, sharp.height // 6), Image.Resampling.BOX)
    blurred = small.resize(sharp.size, Image.Resampling.BICUBIC)
    clear = bench.ingest("clear.pdf", scan(sharp))
    unsure = bench.ingest("blurred.png", png(blurred))
    assert bench.state(clear) == ("indexed", "")
    [hit, *_] = bench.search("when does the lease end").hits
    assert (hit.document_id, hit.page) == (clear.document_id, 1)
    [reading] = bench.reader.document(clear.document_id, scope="acme")["coverage"]["recognised"]
    assert reading["agreement"] >= 0.85

    state, reason = bench.state(unsure)
    assert state == "quarantined"
    assert "compare its text with the picture" in reason
    [finding] = review.show(bench.line.capabilities, unsure).findings
    assert (finding.rule_id, finding.place) == ("ocr.doubtful", "page 1")
    looked_at = review.show(bench.line.capabilities, unsure).shown
    review.release(
        bench.line.capabilities, unsure, looked_at, actor="cli:ana", reason="read it, it is right"
    )
    bench.line.run_all([unsure])
    assert bench.state(unsure) == ("indexed", "")


@pytest.mark.requirement("O-58")
def test_a_scan_that_had_to_wait_is_read_once_an_engine_is_installed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("lease.pdf", scan(page(SAMPLES["deu"])))
    with monkeypatch.context() as without:
        without.setenv("PATH", "/nonexistent")
        with open_line(bench.settings, actor="test", clock=bench.clock) as line:
            key = line.register(bench.request("lease.pdf"))
            line.run_all([key])
    state, reason = bench.state(key)
    assert state == "needs_ocr"
    assert "Install text recognition" in reason
    bench.line.run_all([key])
    assert bench.state(key) == ("indexed", "")
    assert "drei Monate" in " ".join(bench.texts("Wie lange vorher?"))
