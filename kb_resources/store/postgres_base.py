"""What the parts of the Postgres store share: transactions by role, and the scope inside them.

Belongs here: opening a scope for writing or reading. What does not: the contract's methods
(`postgres`, `postgres_work`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from kb_resources.model import GONE, DocumentKey, validate_scope
from kb_resources.store import documents as ledger
from kb_resources.store import locks, scopes, vectors
from kb_resources.store.codec import storable, storable_json
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.embed_work import WorkList
from kb_resources.store.pool import Database
from kb_resources.store.postgres_scopes import PgRegistry
from kb_resources.store.records import Limits, VectorSpace
from kb_resources.store.sql import rows, sql


@dataclass(frozen=True, slots=True)
class Opened:
    """A scope inside a transaction."""

    conn: Conn
    name: str
    scope_id: int
    model_key: int

    @property
    def works(self) -> WorkList:
        """Its list of embedding work."""
        return WorkList(self.conn, self.scope_id, self.model_key)

    def document(self, document_id: str) -> DocumentRow | None:
        """The document, locked to the end of the transaction."""
        key = DocumentKey(self.name, storable(document_id))
        found = ledger.load(self.conn, [key])
        if not found:
            return None
        locks.lock(self.conn, found[0].document_key)
        return ledger.load_one(self.conn, key)

    def rows(self, name: str, **given: Any) -> list[dict[str, Any]]:
        """Rows of a named statement, the scope's name bound."""
        clean = {key: _askable(value) for key, value in given.items()}
        return rows(self.conn, name, {"scope": self.name, **clean})


class PgBase:
    """Database and settings of a store in Postgres.

    Args:
        database: pools of the three roles; the caller closes it.
        space: the model vectors are by.
        limits: what one call may carry.
        clock: aware UTC now.
        pinned: the one scope it answers for, or None.
        actor: for the logs.
    """

    def __init__(
        self,
        database: Database,
        space: VectorSpace,
        *,
        limits: Limits | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        pinned: str | None = None,
        actor: str = "store",
    ) -> None:
        self._database = database
        self._space = space
        self._limits = limits or Limits()
        self._clock = clock
        self._pinned = None if pinned is None else validate_scope(pinned)
        self._actor = actor

    @property
    def space(self) -> VectorSpace:
        """See `contract.KnowledgeStore`."""
        return self._space

    @property
    def scopes(self) -> PgRegistry:
        """See `contract.KnowledgeStore`."""
        return PgRegistry(self._database, self._clock)

    def pinned_to(self, scope: str) -> Self:
        """The same store, answering for one scope only."""
        return type(self)(
            self._database,
            self._space,
            limits=self._limits,
            clock=self._clock,
            pinned=scope,
            actor=self._actor,
        )

    @contextmanager
    def _writing(self, name: str) -> Iterator[Opened]:
        with self._database.transaction("pipeline") as conn:
            scope_id = _scope_id(conn, name)
            model = vectors.ensure_model(conn, self._space.model_id, self._space.dimensions)
            yield Opened(conn, name, scope_id, model)

    @contextmanager
    def _reading(self, name: str) -> Iterator[Opened]:
        with self._database.transaction("app", name) as conn:
            yield Opened(conn, name, _scope_id(conn, name), 0)

    def _log(self, opened: Opened, row: DocumentRow, event: str, **details: Any) -> None:
        ledger.append_lifecycle(
            opened.conn, row, event, actor=self._actor, version=row.latest_version, **details
        )


def _scope_id(conn: Conn, name: str) -> int:
    row = conn.execute(sql("get_scope"), {"name": name}).fetchone()
    if row is None:
        raise scopes.no_scope(name)
    return int(row[0])


def present(row: DocumentRow | None) -> DocumentRow | None:
    """The row, None where the document was removed or erased."""
    return None if row is None or row.state in GONE else row


def _askable(value: Any) -> Any:
    """A value that Postgres can compare: texts without U+0000 and lone surrogates."""
    return storable_json(value) if isinstance(value, str | list | tuple) else value
