"""What all stages share: the unchanged answer, the written end, the refusal of the gate.

Belongs here: turning a stage's outcome into rows and a StageReport. What does not: deciding it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kb_resources.errors import IntegrityError
from kb_resources.model import AnyStage, DocumentState, Refusal, Stage, StageReport
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents, erasure, staging, versions
from kb_resources.store.documents import Conn, DocumentRow


def version_key(row: DocumentRow) -> int:
    """The newest version's key; IntegrityError before acquire made one."""
    if row.version_key is None:
        raise IntegrityError(
            f"{row.key} has no version yet.", next_step="Run the acquire stage for it first."
        )
    return row.version_key


def report(stage: AnyStage, row: DocumentRow, started: float, **values: Any) -> StageReport:
    """A StageReport for the row, `started` from time.perf_counter()."""
    values.setdefault("version", row.latest_version)
    return StageReport(
        stage=stage,
        scope=row.scope,
        document_id=row.document_id,
        duration_s=time.perf_counter() - started,
        **values,
    )


def unchanged(
    stage: AnyStage, row: DocumentRow, known: staging.StageResult, started: float
) -> StageReport:
    """The answer for a known fingerprint: no work, the same end as then."""
    return report(
        stage,
        row,
        started,
        worked=False,
        state=DocumentState(known.state) if known.state else None,
        reason=known.reason,
        counts=known.counts,
        details=known.details,
    )


def known_result(
    caps: Capabilities, row: DocumentRow, stage: AnyStage, fingerprint: str
) -> staging.StageResult | None:
    """The stored result if it was reached with this fingerprint."""
    with caps.database.transaction("pipeline") as conn:
        found = staging.results(conn, [version_key(row)], stage).get((version_key(row), stage))
    return found if found is not None and found.fingerprint == fingerprint else None


def converted_otherwise(caps: Capabilities, row: DocumentRow) -> bool:
    """Whether the body is by a model that is not asked any more: parsing takes it back."""
    return row.converted_by not in (None, caps.versions.converter)


def of_another_model(stage: AnyStage, row: DocumentRow, started: float) -> StageReport:
    """The refusal to work on such a body."""
    return report(
        stage,
        row,
        started,
        worked=False,
        refused=True,
        reason=f"Its body was written by {row.converted_by}, which is not asked any more. "
        "Run it from parse.",
    )


def not_cleared(stage: AnyStage, row: DocumentRow, started: float) -> StageReport:
    """The gate's refusal: nothing is written, the reason says what to do."""
    verdict = row.verdict or "none"
    if row.verdict == "quarantine":
        step = "Review its findings, then release or reject it."
    elif row.verdict == "block" or row.version_state == DocumentState.LANGUAGE_REFUSED:
        step = "Its text is gone; change the source and ingest it again."
    else:
        step = "Run the scan stage for it first."
    return report(
        stage,
        row,
        started,
        worked=False,
        refused=True,
        reason=f"The gate holds: no clean verdict for these bytes (verdict: {verdict}). {step}",
        details={"verdict": verdict, "state": row.version_state or row.state},
    )


def finish(
    conn: Conn,
    caps: Capabilities,
    stage: AnyStage,
    row: DocumentRow,
    started: float,
    *,
    fingerprint: str,
    output: str,
    counts: Mapping[str, float] | None = None,
    details: Mapping[str, Any] | None = None,
    end: Refusal | None = None,
) -> StageReport:
    """Write the stage's result, and the document's end where it came to one."""
    made = report(
        stage,
        row,
        started,
        state=end.state if end else None,
        reason=end.reason if end else "",
        counts=counts or {},
        details={**(details or {}), **(end.details if end else {})},
    )
    staging.save_result(
        conn,
        row,
        stage,
        fingerprint=fingerprint,
        output=output,
        state=made.state.value if made.state else None,
        reason=made.reason,
        counts=made.counts,
        details=made.details,
        duration_s=made.duration_s,
    )
    if end is not None:
        settled = caps.versions.settled(row, row.digest or "")
        versions.set_state(conn, version_key(row), end.state.value, end.reason)
        documents.set_state(conn, row, end.state, end.reason, settled=settled)
        documents.append_lifecycle(
            conn,
            row,
            end.state.value,
            actor=caps.actor,
            version=row.latest_version,
            stage=stage.value,
        )
    elif row.state != DocumentState.PENDING and stage is not Stage.SUPERSEDE:
        documents.reopen(conn, row)
    return made


def drop_bytes(caps: Capabilities, row: DocumentRow) -> None:
    """Delete the bytes of a version whose texts were purged, unless another version needs them.

    Call it once the purge is committed: who brings the same bytes meanwhile keeps them, since both
    look under the lock that `acquire` takes.
    """
    with caps.database.transaction("pipeline") as conn:
        if row.digest and not erasure.bytes_used(conn, row.scope_id, row.digest):
            caps.blobs(row.scope).delete(row.digest)
