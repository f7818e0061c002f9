"""Kept citations are looked at again when their documents hold another version or body.

Belongs here: going through what is due, a transaction a batch. What does not: the check itself
(`answer.citing`). A citation that nothing happened to costs one row of a query and no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kb_resources.answer.keeping import recheck
from kb_resources.store import citations
from kb_resources.store.pool import Database

BATCH = 500


@dataclass(frozen=True, slots=True)
class RecheckReport:
    """What a round over kept citations found.

    Attributes:
        checked: citations that were due.
        turned: of those, how many came to another status than they had, by their new one.
        standing: all citations by status, afterwards.
    """

    checked: int
    turned: dict[str, int]
    standing: dict[str, int]


def recheck_citations(
    database: Database,
    *,
    clock: Callable[[], datetime],
    scope: str | None = None,
    batch: int = BATCH,
) -> RecheckReport:
    """Check every citation that is due; may be stopped and run again at any time.

    Args:
        database: transactions of the pipeline role.
        clock: aware now, in UTC.
        scope: only of this scope; None: of all.
        batch: citations a transaction.
    """
    checked, turned = 0, Counter[str]()
    while True:
        with database.transaction("pipeline") as conn:
            due = citations.due(conn, scope, limit=batch)
            outcomes = recheck(conn, due, clock)
        checked += len(due)
        turned.update(outcomes[row["citation_id"]] for row in due if _turned(row, outcomes))
        if len(due) < batch:
            break
    with database.transaction("pipeline") as conn:
        standing = citations.counts(conn, scope)
    return RecheckReport(checked, dict(turned), standing)


def _turned(row: citations.Row, outcomes: dict[str, str]) -> bool:
    return bool(outcomes[row["citation_id"]] != row["status"])
