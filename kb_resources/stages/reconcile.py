"""Reconciliation: stores that ought to agree are compared; what can be mended is, the rest told.

Belongs here: orphaned and missing blobs, ledger against retrieval tables, left-over staging,
erasures that a crash cut short. What does not: when it runs, and Dagster's partitions
(`kb_assets.reconcile`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from kb_resources.acquire import Acquired
from kb_resources.errors import KbError, NotFound
from kb_resources.model import DocumentKey, DocumentState
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.erase import Eraser
from kb_resources.store import documents, erasure, locks, passages, reconcile
from kb_resources.store.documents import ScopeRow

UNPUBLISHED = "indexed_but_not_published"
_HALF_WRITTEN_FOR = timedelta(days=1)
"""After so long a file that a blob is written to has no writer any more."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two stores that did not agree.

    Attributes:
        kind: stable name.
        subject: document `scope:id`, or `scope/digest` of a blob.
        repaired: whether they agree now.
        next_step: what a person has to do where they do not.
    """

    kind: str
    subject: str
    repaired: bool
    next_step: str = ""


def reconcile_stores(caps: Capabilities) -> list[Difference]:
    """Compare and mend everything but what an orchestrator holds.

    Safe beside running work: bytes are deleted under the lock that acquire takes, rows are mended
    under their document's.
    """
    found = [*_blobs(caps)]
    with caps.database.transaction("pipeline") as conn:
        readers, validity = reconcile.drifted_readers(conn), reconcile.drifted_validity(conn)
        wrongly, unpublished = reconcile.wrongly_published(conn), reconcile.unpublished(conn)
        staged = reconcile.drop_stale_staging(conn)
    for row, key in readers:
        with caps.database.transaction("pipeline") as conn:
            locks.lock(conn, row)
            mended = reconcile.mend_readers(conn, row) > 0
        step = "" if mended else "Ingest the document again."
        found.append(Difference("readers", str(key), mended, step))
    found += _validity(caps, validity)
    for row, key in wrongly:
        with caps.database.transaction("pipeline") as conn:
            passages.remove(conn, row, caps.clock())
        found.append(Difference("removed_but_published", str(key), True))
    found += [
        Difference(UNPUBLISHED, str(key), True) for _, key in unpublished if _reopen(caps, key)
    ]
    if staged:
        found.append(Difference("stale_staging", f"{staged} rows", True))
    return found


def finish_erasures(eraser: Eraser) -> list[Difference]:
    """End erasures that stopped between the stores, one by one, so that one cannot hold up others.

    What a store that is away still holds is told with what to do, and tried again the next time.
    """
    with eraser.capabilities.database.transaction("pipeline") as conn:
        stopped = [item.erasure_id for item in erasure.unfinished(conn)]
    found = []
    for erasure_id in stopped:
        step = ""
        try:
            eraser.resume(erasure_id)
        except KbError as error:
            step = f"{error.message} {error.next_step}".strip()
        found.append(Difference("unfinished_erasure", erasure_id, not step, step))
    return found


def partition_keys(caps: Capabilities) -> list[DocumentKey]:
    """Documents that an orchestrator should have a partition for."""
    with caps.database.transaction("pipeline") as conn:
        return reconcile.partition_keys(conn)


def _blobs(caps: Capabilities) -> Iterator[Difference]:
    with caps.database.transaction("pipeline") as conn:
        scopes = [documents.get_scope(conn, row["name"]) for row in documents.list_scopes(conn)]
        wanted = erasure.wanted_blobs(conn)
    by_scope: dict[str, set[str]] = {}
    for name, digest in wanted:
        by_scope.setdefault(name, set()).add(digest)
    for scope in scopes:
        store = caps.blobs(scope.name)
        if swept := store.sweep(caps.clock() - _HALF_WRITTEN_FOR):
            yield Difference("half_written_blob", f"{scope.name}: {swept} files", True)
        needed = by_scope.get(scope.name, set())
        there = set(store.iter())
        for digest in sorted(there - needed):
            with caps.database.transaction("pipeline") as conn:
                orphan = not erasure.bytes_used(conn, scope.scope_id, digest)
                if orphan:
                    store.delete(digest)
            if orphan:
                yield Difference("orphan_blob", f"{scope.name}/{digest}", True)
        for digest in sorted(needed - there):
            if not store.exists(digest):
                yield from _fetched_again(caps, scope, digest)


def _fetched_again(caps: Capabilities, scope: ScopeRow, digest: str) -> Iterator[Difference]:
    """Bytes that are gone may still stand at their source; nothing where nobody needs them now."""
    subject = f"{scope.name}/{digest}"
    with caps.database.transaction("pipeline") as conn:
        sources = reconcile.sources_of(conn, scope.name, digest)
    for uri in sources:
        try:
            got = caps.read(uri)
        except KbError:  # gone, or not to be read: the next source, or the backup
            continue
        if isinstance(got, Acquired) and got.digest == digest:
            with caps.database.transaction("pipeline") as conn:
                if erasure.bytes_used(conn, scope.scope_id, digest):
                    caps.blobs(scope.name).put(got.data)
                    yield Difference("missing_blob", subject, True)
            return
    with caps.database.transaction("pipeline") as conn:
        needed = erasure.bytes_used(conn, scope.scope_id, digest)
    if needed:
        yield Difference("missing_blob", subject, False, "Restore the blob from a backup.")


def _validity(caps: Capabilities, drifted: reconcile.Found) -> list[Difference]:
    for row, _ in drifted:
        with caps.database.transaction("pipeline") as conn:
            locks.lock(conn, row)
            reconcile.mend_validity(conn, row)
    if not drifted:
        return []
    with caps.database.transaction("pipeline") as conn:
        left = {row for row, _ in reconcile.drifted_validity(conn)}
    step = "Ingest the document again."
    return [
        Difference("validity", str(key), row not in left, step if row in left else "")
        for row, key in drifted
    ]


def _reopen(caps: Capabilities, key: DocumentKey) -> bool:
    """Back to pending, where the next run takes it up; False where it was decided about since."""
    try:
        with caps.database.transaction("pipeline") as conn:
            row = locks.load_locked(conn, key)
            if row.state == DocumentState.INDEXED:
                documents.reopen(conn, row)
            return row.state == DocumentState.INDEXED
    except NotFound:  # erased
        return False
