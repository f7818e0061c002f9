"""Decisions that act on the next query, without a run: audiences, removal, restoring.

Belongs here: the use cases, each with actor and reason in the document's log. What does not:
erasing (`erase`), permissions of who may decide (`model.audiences`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kb_resources.errors import InputError, PolicyError
from kb_resources.model import DocumentKey, DocumentState, validate_audience
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents, erasure, lifecycle, locks, selections

_MAX_REASON = 2000
_MAX_ACTOR = 200


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decision led to.

    Attributes:
        key: the document.
        changed: False where it stood so before; nothing was written then.
        state: the document's state now.
        audiences: who may read it now; empty: everyone in the scope.
        to_run: documents that the line has to take up now: duplicates that lost their first, or
            the document itself where nothing of it was published.
    """

    key: DocumentKey
    changed: bool
    state: DocumentState
    audiences: tuple[str, ...]
    to_run: tuple[DocumentKey, ...] = ()


def set_audiences(
    caps: Capabilities, key: DocumentKey, audiences: Sequence[str], *, actor: str, reason: str
) -> Decided:
    """Decide who may read a document; holds for all its versions from the next query on.

    No source changes it again until `follow_source`. Nothing is embedded and no run is needed,
    except for duplicates of the document that have other readers now.

    Args:
        caps: of the pipeline.
        key: the document.
        audiences: names of which a reader must hold one; empty: everyone in the scope.
        actor: who decides.
        reason: why; kept in the document's log.

    Raises:
        NotFound: no such document.
        InputError: a name, the actor or the reason does not fit.
        PolicyError: the document was erased.
    """
    wanted = sorted({validate_audience(name) for name in audiences})
    check_decision(actor, reason)
    with caps.database.transaction("pipeline") as conn:
        row = locks.load_locked(conn, key)
        if row.state == DocumentState.ERASED:
            raise PolicyError(f"{key} was erased.", next_step="Nothing of it is left to read.")
        settled = row.settled_fingerprint == caps.versions.settled(row, row.digest or "")
        held = lifecycle.decide_audiences(conn, row, wanted, actor=actor)
        if held == wanted:
            return Decided(key, False, DocumentState(row.state), tuple(wanted))
        documents.append_lifecycle(
            conn,
            row,
            "audiences_set",
            actor=actor,
            version=row.latest_version,
            before=held,
            audiences=wanted,
            reason=reason,
        )
        now = replace(row, audiences=wanted)
        if settled and row.digest:
            documents.touch_settled(conn, row, caps.versions.settled(now, row.digest))
        woken = documents.wake_duplicates(conn, row)
        if row.state == DocumentState.DUPLICATE:
            documents.reopen(conn, row)
            woken.append(key.document_id)
        state = DocumentState(documents.load_one(conn, key).state)
    return Decided(key, True, state, tuple(wanted), _keys(key, woken))


def follow_source(caps: Capabilities, key: DocumentKey, *, actor: str, reason: str) -> bool:
    """Take a decision about audiences back: the source's own apply when it is next read.

    Returns:
        Whether there was a decision.
    """
    check_decision(actor, reason)
    with caps.database.transaction("pipeline") as conn:
        row = locks.load_locked(conn, key)
        followed = lifecycle.follow_source(conn, row)
        if followed:
            documents.append_lifecycle(
                conn,
                row,
                "audiences_follow_source",
                actor=actor,
                version=row.latest_version,
                reason=reason,
            )
    return followed


def remove(caps: Capabilities, key: DocumentKey, *, actor: str, reason: str) -> Decided:
    """Take a document out of search; its history stays and it can be restored.

    It stays removed, whatever its source does, until `restore`. Removing twice is no error.

    Raises:
        NotFound: no such document.
        InputError: actor or reason does not fit.
        PolicyError: the document was erased.
    """
    check_decision(actor, reason)
    with caps.database.transaction("pipeline") as conn:
        row = locks.load_locked(conn, key)
        ended = lifecycle.remove(conn, row, caps.clock(), f"Removed: {reason}")
        if ended is None:
            return Decided(key, False, DocumentState.REMOVED, tuple(row.audiences))
        documents.append_lifecycle(
            conn,
            row,
            "removed",
            actor=actor,
            version=row.latest_version,
            reason=reason,
            state_before=row.state,
        )
        woken = documents.wake_duplicates(conn, row)
    return Decided(key, True, DocumentState.REMOVED, tuple(row.audiences), _keys(key, woken))


def of_source(caps: Capabilities, scope: str, source: str) -> list[DocumentKey]:
    """Documents of a scope that came from a source, or from below it, and are not removed.

    Raises:
        NotFound: no such scope.
    """
    with caps.database.transaction("pipeline") as conn:
        documents.get_scope(conn, scope)
        return lifecycle.of_source(conn, scope, source)


def of_batch(caps: Capabilities, scope: str, batch_id: str) -> list[DocumentKey]:
    """Documents of a scope that a batch was about.

    Raises:
        NotFound: no such scope.
    """
    with caps.database.transaction("pipeline") as conn:
        documents.get_scope(conn, scope)
        return [key for key in selections.batch_keys(conn, batch_id) if key.scope == scope]


def restore(caps: Capabilities, key: DocumentKey, *, actor: str, reason: str) -> Decided:
    """Bring a removed document back; what was published is found by the next query.

    A document that is not removed is left as it is. One that came back by itself after it was
    erased, and was kept out, is let in again. Errors as for `remove`.
    """
    check_decision(actor, reason)
    with caps.database.transaction("pipeline") as conn:
        row = locks.load_locked(conn, key)
        if row.state == DocumentState.ERASED:
            if not row.source_uri:
                raise PolicyError(
                    f"{key} was erased.", next_step="Nothing is left; ingest its source again."
                )
            erasure.readmit(conn, row.scope_id, key)
        state = lifecycle.restore(conn, row, caps.clock())
        if state is None:
            return Decided(key, False, DocumentState(row.state), tuple(row.audiences))
        documents.append_lifecycle(
            conn,
            row,
            "restored",
            actor=actor,
            version=row.latest_version,
            reason=reason,
            state=state.value,
        )
    to_run = (key,) if state is DocumentState.PENDING else ()
    return Decided(key, True, state, tuple(row.audiences), to_run)


def check_decision(actor: str, reason: str) -> None:
    """Raise InputError unless both are given and not too long."""
    if not reason.strip() or len(reason) > _MAX_REASON:
        raise InputError(
            f"A decision needs a reason of 1 to {_MAX_REASON:,} characters.",
            next_step="Give --reason.",
        )
    if not actor.strip() or len(actor) > _MAX_ACTOR:
        raise InputError(
            f"A decision needs an actor of 1 to {_MAX_ACTOR} characters.",
            next_step="Say who decides with --actor.",
        )


def _keys(key: DocumentKey, document_ids: Sequence[str]) -> tuple[DocumentKey, ...]:
    return tuple(DocumentKey(key.scope, document_id) for document_id in document_ids)
