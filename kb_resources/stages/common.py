"""What all stages share: the unchanged answer, the written end, the refusal of the gate.

Belongs here: turning a stage's outcome into rows and a StageReport. What does not: deciding it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kb_resources.errors import IntegrityError
from kb_resources.model import AnyStage, DocumentState, Refusal, Stage, StageReport
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents, erasure, staging, versions
from kb_resources.store.documents import Conn, DocumentRow


@dataclass(slots=True)
class Made:
    """What a stage made of a document.

    Attributes:
        row: the document as it stood.
        fingerprint: what it was reached with.
        output: hash of what was made.
        counts: numbers for the report.
        details: facts for the report.
        end: where the document's way ends here.
        product: what the stage's `write` stores.
        duration_s: seconds of work.
    """

    row: DocumentRow
    fingerprint: str
    output: str = ""
    counts: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    end: Refusal | None = None
    product: Any = None
    duration_s: float = 0.0


def version_key(row: DocumentRow) -> int:
    """The newest version's key; IntegrityError before acquire made one."""
    if row.version_key is None:
        raise no_version(row)
    return row.version_key


def no_version(row: DocumentRow) -> IntegrityError:
    """The error for a document that acquire has made no version of."""
    return IntegrityError(
        f"{row.key} has no version yet.", next_step="Run the acquire stage for it first."
    )


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
    stage: AnyStage, row: DocumentRow, known: staging.StageResult, started: float | None = None
) -> StageReport:
    """The answer for a known fingerprint: no work, the same end as then."""
    return report(
        stage,
        row,
        time.perf_counter() if started is None else started,
        worked=False,
        state=DocumentState(known.state) if known.state else None,
        reason=known.reason,
        counts=known.counts,
        details=known.details,
    )


def refused(stage: AnyStage, row: DocumentRow, reason: str, **details: Any) -> StageReport:
    """The answer of a stage that may not or cannot work on the document as it stands."""
    return report(
        stage,
        row,
        time.perf_counter(),
        worked=False,
        refused=True,
        reason=reason,
        details=details,
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


def of_another_model(stage: AnyStage, row: DocumentRow) -> StageReport:
    """The refusal to work on such a body."""
    return refused(
        stage,
        row,
        f"Its body was written by {row.converted_by}, which is not asked any more. "
        "Run it from parse.",
    )


def not_cleared(stage: AnyStage, row: DocumentRow) -> StageReport:
    """The gate's refusal: nothing is written, the reason says what to do."""
    verdict = row.verdict or "none"
    if row.verdict == "quarantine":
        step = "Review its findings, then release or reject it."
    elif row.verdict == "block" or row.version_state == DocumentState.LANGUAGE_REFUSED:
        step = "Its text is gone; change the source and ingest it again."
    else:
        step = "Run the scan stage for it first."
    return refused(
        stage,
        row,
        f"The gate holds: no clean verdict for these bytes (verdict: {verdict}). {step}",
        verdict=verdict,
        state=row.version_state or row.state,
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
    counts: Mapping[str, float],
    details: Mapping[str, Any],
) -> StageReport:
    """`finish_all` for one document, `started` from time.perf_counter()."""
    made = Made(row, fingerprint, output, counts, details)
    made.duration_s = time.perf_counter() - started
    return finish_all(conn, caps, stage, [made])[row.document_key]


def finish_all(
    conn: Conn, caps: Capabilities, stage: AnyStage, made: Sequence[Made]
) -> dict[int, StageReport]:
    """Write a stage's results, and the ends of documents that came to one; by document key."""
    reports = {each.row.document_key: _report(stage, each) for each in made}
    results = [
        staging.NewResult(each.row, each.fingerprint, each.output, reports[each.row.document_key])
        for each in made
    ]
    staging.save_results(conn, stage, results)
    for each in made:
        if each.end is not None:
            _end(conn, caps, stage, each.row, each.end)
    if stage is not Stage.SUPERSEDE:
        going = [each.row for each in made if each.end is None]
        documents.reopen_many(
            conn, [row.document_key for row in going if row.state != DocumentState.PENDING]
        )
    return reports


def _report(stage: AnyStage, made: Made) -> StageReport:
    end = made.end
    return StageReport(
        stage=stage,
        scope=made.row.scope,
        document_id=made.row.document_id,
        version=made.row.latest_version,
        duration_s=made.duration_s,
        state=end.state if end else None,
        reason=end.reason if end else "",
        counts=made.counts,
        details={**made.details, **(end.details if end else {})},
    )


def _end(conn: Conn, caps: Capabilities, stage: AnyStage, row: DocumentRow, end: Refusal) -> None:
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


def purge(conn: Conn, row: DocumentRow, stage: AnyStage) -> None:
    """Delete every text of a version that `stage` refuses; its result alone stays."""
    versions.purge_texts(conn, row)
    staging.forget_after(conn, row, Stage.PARSE, inclusive=True, sparing=stage)


def drop_bytes(caps: Capabilities, row: DocumentRow) -> None:
    """Delete the bytes of a version whose texts were purged, unless another version needs them.

    Call it once the purge is committed: who brings the same bytes meanwhile keeps them, since both
    look under the lock that `acquire` takes.
    """
    with caps.database.transaction("pipeline") as conn:
        if row.digest and not erasure.bytes_used(conn, row.scope_id, row.digest):
            caps.blobs(row.scope).delete(row.digest)
