"""Stage 7: publish a cleared, chunked, embedded version, in one transaction.

The transaction closes the version that held before. The retrieval tables refuse on their own
whatever is not cleared. Fingerprint: the embed stage's output, analyzer, readers, title.
"""

from __future__ import annotations

import time

from kb_resources.model import Stage, StageReport
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.store import documents, passages, staging, vectors, versions
from kb_resources.store.documents import DocumentRow

STAGE = Stage.INDEX


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Publish one version."""
    started = time.perf_counter()
    if not row.cleared:
        return common.not_cleared(STAGE, row, started)
    key = common.version_key(row)
    with caps.database.transaction("pipeline") as conn:
        results = staging.results(conn, [key], Stage.EMBED, STAGE)
        embedded, known = results.get((key, Stage.EMBED)), results.get((key, STAGE))
        if embedded is None:
            return common.report(
                STAGE,
                row,
                started,
                worked=False,
                refused=True,
                reason="It is not embedded yet. Run the embed stage for it first.",
            )
        mark = fingerprint(
            embedded.output, caps.versions.analyzer, row.audiences, row.title, row.language
        )
        if known is not None and known.fingerprint == mark and row.current:
            return common.unchanged(STAGE, row, known, started)
        staging.restage(conn, key)
        chunks = staging.load_chunks(conn, key, versions.load_parsed(conn, key).body)
    caps.count("indexed")
    lexical = [caps.lexical(chunk, row.language or "und") for chunk in chunks]
    with caps.database.transaction("pipeline") as conn:
        documents.hold(conn, row)
        # Who may read it, and which model is live, may have been decided anew since.
        now = documents.load_one(conn, row.key)
        model = caps.versions.model_of(now)
        put = passages.put_version(
            conn,
            key,
            valid_from=row.requested_valid_from or caps.clock(),
            audiences=now.audiences,
            lexical=lexical,
            model_id=vectors.model_key(conn, model),
        )
        return common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
            output=fingerprint(mark),
            counts={"passages": put.passages},
            details={"put": put.state, "model": model},
        )
