"""The review queue: what waits, what it says, and a person's decision.

Belongs here: the use cases around quarantined versions. What does not: scanning. A release resumes
exactly that document; a rejection purges its texts like a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb_resources.errors import ConflictError, InputError
from kb_resources.model import DocumentKey, DocumentState, Finding, Stage
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import documents, locks, reviews, staging, versions
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.reviews import WaitingReview


@dataclass(frozen=True, slots=True)
class Shown:
    """What somebody looked at; a decision holds for exactly that.

    Attributes:
        version: its number.
        digest: SHA-256 hex of its bytes.
        body_digest: SHA-256 hex of what was read from them; None before anything was.
    """

    version: int
    digest: str
    body_digest: str | None


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """One quarantined version with its findings."""

    document: DocumentRow
    findings: tuple[Finding, ...]

    @property
    def shown(self) -> Shown:
        """What a decision about this case names."""
        row = self.document
        return Shown(row.latest_version or 0, row.digest or "", row.body_digest)


def waiting(caps: Capabilities, scope: str) -> list[WaitingReview]:
    """What waits in a scope, oldest first; NotFound for an unknown scope."""
    with caps.database.transaction("pipeline") as conn:
        documents.get_scope(conn, scope)
        return reviews.waiting(conn, scope)


def show(caps: Capabilities, key: DocumentKey) -> ReviewCase:
    """A document's newest version with its findings, whatever its verdict."""
    with caps.database.transaction("pipeline") as conn:
        row = documents.load_one(conn, key)
        findings = versions.load_findings(conn, row.version_key or 0)
    return ReviewCase(row, findings)


def release(caps: Capabilities, key: DocumentKey, shown: Shown, *, actor: str, reason: str) -> None:
    """Clear the quarantined version that was looked at; the line takes it on from the chunk stage.

    Raises:
        InputError: no reason was given.
        ConflictError: the document says something else by now (`not_what_was_shown`).
        PolicyError: it does not wait for review.
    """
    _check(reason)
    with caps.database.transaction("pipeline") as conn:
        row = _as_shown(conn, key, shown)
        reviews.decide(conn, row, "release", actor=actor, reason=reason)
        documents.reopen(conn, row)


def reject(caps: Capabilities, key: DocumentKey, shown: Shown, *, actor: str, reason: str) -> None:
    """Block the quarantined version that was looked at and purge its texts; errors as `release`."""
    _check(reason)
    with caps.database.transaction("pipeline") as conn:
        row = _as_shown(conn, key, shown)
        reviews.decide(conn, row, "reject", actor=actor, reason=reason)
        versions.purge_texts(conn, row)
        # What the stages told of it names its title.
        staging.forget_after(conn, row, Stage.PARSE, inclusive=True, sparing=Stage.SCAN)
        documents.set_state(
            conn,
            row,
            DocumentState.BLOCKED,
            f"Rejected in review: {reason}",
            settled=caps.versions.settled(row, row.digest or ""),
        )
    common.drop_bytes(caps, row)


def _as_shown(conn: Conn, key: DocumentKey, shown: Shown) -> DocumentRow:
    """The document under its lock, if it still is what somebody looked at."""
    row = locks.load_locked(conn, key)
    if ReviewCase(row, ()).shown != shown:
        raise ConflictError(
            f"{key.document_id} is not what was looked at: it is version {row.latest_version} now, "
            "or was read anew.",
            next_step="Look at it again, then decide.",
            code="not_what_was_shown",
        )
    return row


def _check(reason: str) -> None:
    if not reason.strip() or len(reason) > 2000:
        raise InputError(
            "A decision needs a reason of 1 to 2,000 characters.", next_step="Say why."
        )
