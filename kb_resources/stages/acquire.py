"""Stage 1: read the source's bytes, store them, number the version.

Fingerprint: the document's settled fingerprint for these bytes. A known one ends the document's
way here with the state it had: an unchanged document costs reading its bytes and one row. Bytes
that are published already make a duplicate, unless its name, which is shown too, does not pass the
scan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

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
from kb_resources.stages.common import Made
from kb_resources.stages.group import BYTES, DOCUMENTS, WORK_S, Outcome
from kb_resources.store import documents, locks, versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.ACQUIRE


@dataclass(frozen=True, slots=True)
class _Read:
    """A document whose bytes are to be stored."""

    row: DocumentRow
    got: Acquired
    settled: str
    read_s: float


def run_many(
    caps: Capabilities, rows: Sequence[DocumentRow], should_stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[DocumentRow, Outcome]]:
    """Acquire documents, in groups; one answer each.

    Raises:
        UnavailableError: a service is away. What was read until then is stored and answered.
    """
    held: list[_Read] = []
    since = time.perf_counter()
    away: UnavailableError | None = None
    for row in rows:
        if should_stop():
            break
        try:
            found = _look(caps, row)
        except UnavailableError as error:
            away = error
            break
        except Exception as error:  # noqa: BLE001 - one document's error stops no other
            yield row, error
            continue
        if isinstance(found, StageReport):
            yield row, found
            continue
        held.append(found)
        waited = time.perf_counter() - since > WORK_S
        if len(held) >= DOCUMENTS or waited or sum(each.got.size_bytes for each in held) > BYTES:
            yield from _store_all(caps, held)
            held, since = [], time.perf_counter()
    yield from _store_all(caps, held)
    if away is not None:
        raise away


def _look(caps: Capabilities, row: DocumentRow) -> StageReport | _Read:
    """The bytes of a source, or the answer where there is nothing to store."""
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
        state, details = DocumentState(row.state), {"digest": got.digest}
        return common.report(
            STAGE, row, started, worked=False, state=state, reason=row.reason, details=details
        )
    caps.count("acquired")
    return _Read(row, got, settled, time.perf_counter() - started)


def _store_all(caps: Capabilities, read: Sequence[_Read]) -> Iterator[tuple[DocumentRow, Outcome]]:
    """Together, but for those that bring the same bytes: each of them sees the one before."""
    going = list(read)
    while going:
        seen: set[tuple[int, str]] = set()
        together: list[_Read] = []
        later: list[_Read] = []
        for each in going:
            bytes_of = (each.row.scope_id, each.got.digest)
            (later if bytes_of in seen or later else together).append(each)
            seen.add(bytes_of)
        outcomes = _stored(caps, together)
        for each in together:
            yield each.row, outcomes[each.row.document_key]
        going = later


def _stored(caps: Capabilities, read: Sequence[_Read]) -> dict[int, Outcome]:
    try:
        with caps.database.transaction("pipeline") as conn:
            return _store(conn, caps, read)
    except UnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - one document's error stops no other
        if len(read) == 1:
            return {read[0].row.document_key: error}
        alone = (_stored(caps, [each]) for each in read)
        return {key: outcome for outcomes in alone for key, outcome in outcomes.items()}


def _store(conn: Conn, caps: Capabilities, read: Sequence[_Read]) -> dict[int, Outcome]:
    started = time.perf_counter()
    locks.lock_many(conn, [each.row.document_key for each in read])
    outcomes, read = _as_it_stands(conn, caps, read)
    # Under the lock on the bytes: an erasure or purge that deletes them is over, or waits.
    locks.lock_bytes(conn, [(each.row.scope_id, each.got.digest) for each in read])
    outcomes |= _new_versions(conn, caps, [r for r in read if r.row.latest_version], started)
    # Bytes that one of these has left are nobody's now.
    fresh = [each for each in read if not each.row.latest_version]
    asking = {each.row.document_key: each.got.digest for each in fresh}
    first = locks.same_bytes(conn, asking) if asking else {}
    new: list[_Read] = []
    for each in fresh:
        found = first.get(each.row.document_key)
        if found is not None and _names_pass(caps, each.row, each.got):
            outcomes[each.row.document_key] = _duplicate(conn, caps, each, found)
        else:
            new.append(each)
    return outcomes | _new_versions(conn, caps, new, started)


def _as_it_stands(
    conn: Conn, caps: Capabilities, read: Sequence[_Read]
) -> tuple[dict[int, Outcome], list[_Read]]:
    """What is still to be stored, under the documents' locks; answers for the others."""
    rows = documents.load(conn, [each.row.key for each in read])
    now = {row.document_key: row for row in rows}  # another key: erased, and registered anew
    outcomes: dict[int, Outcome] = {}
    standing: list[_Read] = []
    for each in read:
        row = now.get(each.row.document_key)
        if row is None:
            outcomes[each.row.document_key] = documents.no_document(each.row.key)
        elif row.latest_version == each.row.latest_version:
            standing.append(replace(each, row=row))
        # Another run brought newer bytes while these waited for their group.
        elif isinstance(found := _look(caps, row), _Read):
            standing.append(found)
        else:
            outcomes[row.document_key] = found
    return outcomes, standing


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


def _duplicate(conn: Conn, caps: Capabilities, read: _Read, first: tuple[int, str]) -> StageReport:
    row, got = read.row, read.got
    reason = f"Same bytes and readers as {first[1]}; search finds that one."
    documents.set_state(
        conn, row, DocumentState.DUPLICATE, reason, settled=read.settled, duplicate_of=first[0]
    )
    documents.append_lifecycle(
        conn, row, "duplicate", actor=caps.actor, version=None, first=first[1], digest=got.digest
    )
    return StageReport(
        stage=STAGE,
        scope=row.scope,
        document_id=row.document_id,
        version=row.latest_version,
        duration_s=read.read_s,
        state=DocumentState.DUPLICATE,
        reason=reason,
        counts={"bytes": got.size_bytes},
        details={"digest": got.digest, "duplicate_of": first[1]},
    )


def _new_versions(
    conn: Conn, caps: Capabilities, read: Sequence[_Read], started: float
) -> dict[int, Outcome]:
    if not read:
        return {}
    for each in read:
        caps.blobs(each.row.scope).put(each.got.data)
    added = versions.add_many(
        conn,
        [
            versions.NewBytes(
                each.row, each.got.digest, each.got.media_type, each.got.size_bytes, each.got.name
            )
            for each in read
        ],
    )
    events: list[documents.Event] = []
    made: list[Made] = []
    for each in read:
        row, got = each.row, each.got
        version_key, number, new = added[row.document_key]
        before = row.latest_version
        woken = documents.wake_duplicates(conn, row) if before not in (None, number) else []
        row = replace(
            row, version_key=version_key, latest_version=number, state=DocumentState.PENDING.value
        )
        if new or before != number:
            name = "acquired" if new else "source_reverted"
            events.append(documents.Event(row, name, number, {"digest": got.digest}))
        details = {
            "digest": got.digest,
            "media_type": got.media_type,
            "name": got.name,
            "new_version": new,
            "woken_duplicates": woken,
        }
        made.append(Made(row, each.settled, got.digest, {"bytes": got.size_bytes}, details))
    documents.append_events(conn, events, actor=caps.actor)
    share = (time.perf_counter() - started) / len(read)
    for each, one in zip(read, made, strict=True):
        one.duration_s = each.read_s + share
    return {**common.finish_all(conn, caps, STAGE, made)}
