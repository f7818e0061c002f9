"""Stage 8: what follows from a publication: others end, events are written, the state is final.

The version that the document itself held before was closed by `index`; here the documents that
the caller named with `supersedes` end too.
"""

from __future__ import annotations

import time

from kb_resources.model import DocumentState, Stage, StageReport
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.store import documents, passages, selections, staging, versions
from kb_resources.store.documents import DocumentRow

STAGE = Stage.SUPERSEDE
_BEGAN = ("new", "replaced", "reinstated")
"""What `index` did where the version began to hold with it."""


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Settle one published version."""
    started = time.perf_counter()
    if not row.cleared:
        return common.not_cleared(STAGE, row, started)
    key = common.version_key(row)
    with caps.database.transaction("pipeline") as conn:
        results = staging.results(conn, [key], Stage.INDEX, STAGE)
        indexed, known = results.get((key, Stage.INDEX)), results.get((key, STAGE))
        if indexed is None or not row.current:
            return common.report(
                STAGE,
                row,
                started,
                worked=False,
                refused=True,
                reason="It is not published yet. Run the index stage for it first.",
            )
        mark = fingerprint(indexed.output, row.supersedes)
        settled = caps.versions.settled(row, row.digest or "")
        if known is not None and known.fingerprint == mark and row.state == DocumentState.INDEXED:
            if row.settled_fingerprint != settled:
                documents.touch_settled(conn, row, settled)
            return common.unchanged(STAGE, row, known, started)
        documents.hold(conn, row)
        # Told once: other readers or rows of the same version end nothing anew.
        began = indexed.details.get("put") in _BEGAN
        ended = selections.versions_ended_by(conn, row) if began else []
        others = [
            other
            for other in selections.current_of(conn, row.scope_id, row.supersedes)
            if other.document_key != row.document_key
        ]
        for other in others:
            passages.end_validity(conn, other.version_key, row.requested_valid_from or caps.clock())
            documents.append_lifecycle(
                conn,
                row,
                "superseded",
                actor=caps.actor,
                version=other.version,
                document_key=other.document_key,
                by=row.document_id,
            )
        for number in ended:
            documents.append_lifecycle(
                conn,
                row,
                "superseded",
                actor=caps.actor,
                version=number,
                by_version=row.latest_version,
            )
        documents.append_lifecycle(
            conn, row, "indexed", actor=caps.actor, version=row.latest_version
        )
        made = common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
            output=fingerprint(mark),
            counts={"superseded": len(ended) + len(others), "passages": indexed.counts["passages"]},
            details={
                "superseded_versions": ended,
                "superseded_documents": [other.document_id for other in others],
            },
        )
        versions.set_state(conn, key, DocumentState.INDEXED.value)
        documents.set_state(conn, row, DocumentState.INDEXED, settled=settled)
    return made
