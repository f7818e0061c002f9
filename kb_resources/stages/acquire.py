"""Stage 1: read the source's bytes, store them, number the version.

Fingerprint: the document's settled fingerprint for these bytes. A known one ends the document's
way here with the state it had: an unchanged document costs reading its bytes and one row. Bytes
that are published already make a duplicate, unless its name, which is shown too, does not pass the
scan.
"""

from __future__ import annotations

import time

from kb_resources.acquire import Acquired
from kb_resources.acquire.stored import stored_digest
from kb_resources.errors import KbError, UnavailableError
from kb_resources.model import (
    GONE,
    DocumentState,
    Refusal,
    SourceKind,
    Stage,
    StageReport,
    Verdict,
)
from kb_resources.scan import name_texts
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents, staging, versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.ACQUIRE


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Acquire one document."""
    started = time.perf_counter()
    if row.state in GONE:
        # Only a decision brings it back (`removal.restore`), not that its source is still there.
        return common.report(
            STAGE, row, started, worked=False, state=DocumentState(row.state), reason=row.reason
        )
    got = _read(caps, row)
    if isinstance(got, Refusal):
        return _refuse(caps, row, got, started)
    settled = caps.versions.settled(row, got.digest)
    if row.settled_fingerprint == settled and row.state != DocumentState.PENDING:
        return common.report(
            STAGE,
            row,
            started,
            worked=False,
            state=DocumentState(row.state),
            reason=row.reason,
            details={"digest": got.digest},
        )
    caps.count("acquired")
    with caps.database.transaction("pipeline") as conn:
        documents.lock(conn, row.document_key)
        row = documents.load_one(conn, row.key)
        first = documents.same_bytes(conn, row, got.digest) if row.latest_version is None else None
        if first is not None and _names_pass(caps, row, got):
            return _duplicate(conn, caps, row, got, first, settled, started)
        # Under the lock on the bytes: an erasure or purge that deletes them is over, or waits.
        documents.lock_bytes(conn, row, got.digest)
        caps.blobs(row.scope).put(got.data)
        return _new_version(conn, caps, row, got, settled, started)


def has_work(caps: Capabilities, row: DocumentRow) -> bool:
    """Whether a run over the document would do anything; reads the bytes of local sources.

    A source that cannot be read now is work: the run says what is wrong with it.

    Raises:
        UnavailableError: the disk or a store is away.
    """
    if row.state in GONE:
        return False
    if row.state == DocumentState.PENDING or row.source_kind == SourceKind.URL:
        return True
    try:
        got = _read(caps, row)
    except UnavailableError:
        raise
    except KbError:
        return True
    if isinstance(got, Refusal):
        return (row.state, row.reason) != (got.state, got.reason)
    return row.settled_fingerprint != caps.versions.settled(row, got.digest)


def _read(caps: Capabilities, row: DocumentRow) -> Acquired | Refusal:
    """The source's bytes; a page whose kept bytes are gone is fetched anew."""
    if row.source_kind == SourceKind.URL:
        digest = stored_digest(row.source_uri)
        if digest and not caps.blobs(row.scope).exists(digest):
            return caps.read(row.origin)
    return caps.read(row.source_uri)


def _refuse(caps: Capabilities, row: DocumentRow, end: Refusal, started: float) -> StageReport:
    known = row.state == end.state and row.reason == end.reason
    if not known:
        with caps.database.transaction("pipeline") as conn:
            documents.set_state(conn, row, end.state, end.reason)
            documents.append_lifecycle(
                conn, row, end.state.value, actor=caps.actor, version=None, stage=STAGE.value
            )
    return common.report(
        STAGE,
        row,
        started,
        version=None,
        worked=not known,
        state=end.state,
        reason=end.reason,
        details=dict(end.details),
    )


def _names_pass(caps: Capabilities, row: DocumentRow, got: Acquired) -> bool:
    """Whether the scan has nothing against the names; if it has, its own stage says what."""
    names = name_texts((row.document_id, row.origin, got.name))
    result = caps.scan("", (), shown=names, language=None, trusted=bool(row.trusted_by))
    return result.verdict is Verdict.CLEAN


def _duplicate(
    conn: Conn,
    caps: Capabilities,
    row: DocumentRow,
    got: Acquired,
    first: tuple[int, str],
    settled: str,
    started: float,
) -> StageReport:
    reason = f"Same bytes and readers as {first[1]}; search finds that one."
    documents.set_state(
        conn, row, DocumentState.DUPLICATE, reason, settled=settled, duplicate_of=first[0]
    )
    documents.append_lifecycle(
        conn, row, "duplicate", actor=caps.actor, version=None, first=first[1], digest=got.digest
    )
    return common.report(
        STAGE,
        row,
        started,
        state=DocumentState.DUPLICATE,
        reason=reason,
        counts={"bytes": got.size_bytes},
        details={"digest": got.digest, "duplicate_of": first[1]},
    )


def _new_version(
    conn: Conn, caps: Capabilities, row: DocumentRow, got: Acquired, settled: str, started: float
) -> StageReport:
    before = row.latest_version
    _, number, new = versions.add(
        conn,
        row,
        digest=got.digest,
        media_type=got.media_type,
        size_bytes=got.size_bytes,
        name=got.name,
    )
    woken = documents.wake_duplicates(conn, row) if before not in (None, number) else []
    row = documents.load_one(conn, row.key)
    if new or before != number:
        documents.append_lifecycle(
            conn,
            row,
            "acquired" if new else "source_reverted",
            actor=caps.actor,
            version=number,
            digest=got.digest,
        )
    made = common.report(
        STAGE,
        row,
        started,
        version=number,
        counts={"bytes": got.size_bytes},
        details={
            "digest": got.digest,
            "media_type": got.media_type,
            "name": got.name,
            "new_version": new,
            "woken_duplicates": woken,
        },
    )
    staging.save_result(
        conn,
        row,
        STAGE,
        fingerprint=settled,
        output=got.digest,
        state=None,
        reason="",
        counts=made.counts,
        details=made.details,
        duration_s=made.duration_s,
    )
    return made
