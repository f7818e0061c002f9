"""Published documents whose vectors are not all there: rows of kb.embed_work.

Belongs here: the list, claims with a lease, and how a try ends, in the caller's transaction. What
does not: embedding (`drain`). A lease instead of a lock: a worker that is gone is noticed after a
restart, since nothing but the clock has to survive it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import class_row

from kb_resources.store.checks import cause, lost, not_held
from kb_resources.store.codec import storable
from kb_resources.store.documents import Conn
from kb_resources.store.records import Work
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class WorkList:
    """The list of one scope and model.

    Attributes:
        conn: inside a transaction.
        scope_id: the scope.
        model_key: whose vectors are waited for.
    """

    conn: Conn
    scope_id: int
    model_key: int

    def open(self, *, document_id: str | None = None, limit: int = 1000) -> tuple[Work, ...]:
        """Documents that are not ready, oldest first; of one document where it is named."""
        with self.conn.cursor(row_factory=class_row(Work)) as cursor:
            given = self._given(document_id=document_id, limit=limit, removed_too=False)
            return tuple(cursor.execute(sql("embed_works"), given).fetchall())

    def of(self, document_id: str, *, removed_too: bool = False) -> Work:
        """Where a document stands; `ready` where nothing waits."""
        with self.conn.cursor(row_factory=class_row(Work)) as cursor:
            given = self._given(document_id=document_id, limit=1, removed_too=removed_too)
            found = cursor.execute(sql("embed_works"), given).fetchone()
        return found or Work(document_id, "ready", 0)

    def expect(self, document_key: int, waiting: int, *, anew: bool) -> None:
        """Note how many passages wait after a publication; `anew` forgets earlier tries."""
        given = self._given(document_key=document_key, anew=anew, held_too=True)
        self.conn.execute(sql("expect_vectors" if waiting else "vectors_arrived"), given)

    def arrived(self, document_key: int) -> None:
        """All vectors are there; a worker that holds the document still has to settle it."""
        given = self._given(document_key=document_key, held_too=False)
        self.conn.execute(sql("vectors_arrived"), given)

    def claim(self, holder: str, now: datetime, lease_s: float) -> Work | None:
        """Take the oldest document that waits; other workers pass over it meanwhile."""
        given = self._given(holder=holder, until=now + timedelta(seconds=lease_s))
        row = self.conn.execute(sql("claim_embed_work"), given).fetchone()
        return self.of(row[0]) if row else None

    def settle(
        self, document_id: str, document_key: int, holder: str, error: str, attempts: int
    ) -> Work:
        """End a try; ConflictError where somebody else holds the document, or nobody."""
        given = self._given(document_id=document_id)
        row = self.conn.execute(sql("held_embed_work"), given).fetchone()
        if row is None or row[0] != holder:
            raise not_held(document_id, holder)
        return self._end(document_id, document_key, error, attempts)

    def requeue(self, document_id: str) -> bool:
        """Put a failed document back, its tries forgotten."""
        done = self.conn.execute(sql("requeue_embed_work"), self._given(document_id=document_id))
        return done.rowcount > 0

    def lapsed(self, now: datetime) -> list[tuple[str, str]]:
        """Documents whose worker let its lease pass, and its name; they stay locked."""
        rows = self.conn.execute(sql("lapsed_embed_work"), self._given(now=now)).fetchall()
        return [(document_id, holder) for document_id, holder in rows]

    def give_up(self, document_id: str, document_key: int, holder: str, attempts: int) -> Work:
        """End the try of a worker that is gone."""
        return self._end(document_id, document_key, lost(holder), attempts)

    def _end(self, document_id: str, document_key: int, error: str, attempts: int) -> Work:
        if self.of(document_id, removed_too=True).state == "ready":
            self.expect(document_key, 0, anew=False)
        else:
            given = self._given(
                document_key=document_key,
                error=cause(error) if error else "",
                attempts=attempts,
            )
            self.conn.execute(sql("settle_embed_work"), given)
        return self.of(document_id, removed_too=True)

    def _given(self, **values: Any) -> dict[str, Any]:
        clean = {
            name: storable(value) if isinstance(value, str) else value
            for name, value in values.items()
        }
        return {"scope_id": self.scope_id, "model_key": self.model_key, **clean}
