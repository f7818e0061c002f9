"""The same file given twice within a second, to two workers at once: one version, one of each row.

Case B30 of the public bug cases (a file uploaded twice was stored and embedded twice).
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_resources.compose import open_line
from kb_resources.model import DocumentKey, DocumentState, Source, SourceKind
from kb_resources.stages.request import IngestRequest

if TYPE_CHECKING:
    from tests.integration.line.conftest import Bench

PDF = Path(__file__).parents[3] / "examples"
_ROWS = """
    select count(distinct v.version_key), count(distinct p.passage_key), count(e.passage_key),
      count(distinct e.passage_key)
    from kb.document d join kb.version v using (document_key)
    left join kb.passage p using (version_key) left join kb.embedding e using (passage_key)
    where d.document_id = %s
"""


def a_pdf() -> bytes:
    """The first PDF of the examples that is published."""
    return next(iter(sorted(PDF.rglob("*.pdf")))).read_bytes()


@pytest.mark.requirement("P-02", "O-20")
@pytest.mark.parametrize("together", [True, False])
def test_one_file_given_to_two_workers_is_one_version(bench: Bench, together: bool) -> None:
    file = bench.write("twice.pdf", a_pdf())
    request = IngestRequest("acme", Source(SourceKind.FILE, str(file), file.name), actor="test")
    both = threading.Barrier(2 if together else 1)
    work: list[Counter[str]] = []

    def ingest(number: int) -> DocumentKey:
        counted: dict[str, int] = {}
        with open_line(bench.settings, actor=f"worker-{number}", counters=counted) as line:
            both.wait()
            key = line.register(request)
            line.run_all([key])
        work.append(Counter(counted))
        return key

    if together:
        with ThreadPoolExecutor(2) as threads:
            first, second = threads.map(ingest, range(2))
    else:
        first, second = ingest(1), ingest(2)
    assert first == second
    assert bench.state(first) == (DocumentState.INDEXED, "")
    with bench.line.capabilities.database.transaction("owner") as conn:
        row = conn.execute(_ROWS, [first.document_id]).fetchone()
    assert row is not None
    versions, passages, embeddings, embedded = row
    assert versions == 1
    assert passages >= 1
    assert embeddings == embedded == passages
    if not together:
        assert work[1]["embedded"] == work[1]["parsed"] == 0
    [found] = bench.reader.history(first.document_id, scope="acme")
    assert len(found["validity"]) == 1
