"""Quarantined versions and what people decided about them.

Belongs here: rows of the review queue in the caller's transaction. What does not: resuming the line
(`stages.review`). Decisions go through `kb.decide_review`, which checks that the version waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class WaitingReview:
    """A version that waits for a person.

    Attributes:
        digest: of its bytes.
        body_digest: of what was read from them.
        since: when the verdict was given, aware.
        findings: number of findings.
    """

    scope: str
    document_id: str
    version: int
    version_key: int
    digest: str
    body_digest: str | None
    title: str | None
    origin: str
    language: str | None
    reason: str
    since: datetime
    findings: int


def waiting(conn: Conn, scope: str) -> list[WaitingReview]:
    """What waits in a scope, oldest first."""
    with conn.cursor(row_factory=class_row(WaitingReview)) as cursor:
        return cursor.execute(sql("waiting_reviews"), {"scope": scope}).fetchall()


def decide(conn: Conn, row: DocumentRow, decision: str, *, actor: str, reason: str) -> None:
    """Release or reject the document's newest version.

    Raises:
        PolicyError: it does not wait for review (as the database's own refusal, translated).
    """
    conn.execute(
        sql("decide_review"),
        {
            "version_key": row.version_key,
            "decision": decision,
            "actor": actor,
            "reason": reason,
        },
    )


def released_rules(conn: Conn, version_keys: Sequence[int]) -> dict[int, frozenset[str]]:
    """Rules that a person has released for exactly the versions' bytes, by version key."""
    found = conn.execute(sql("released_rules"), {"version_keys": list(version_keys)}).fetchall()
    return {key: frozenset(rules) for key, rules in found}
