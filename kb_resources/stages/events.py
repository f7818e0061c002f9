"""Telling others what search finds and what not any more, by name and at least once.

Belongs here: consumers over all scopes or one, and delivering to a Python callable. What does not:
writing events, which the database does with the change itself; Dagster's sensor (`kb_assets`).

Example:
    >>> from kb_resources.stages.events import consume
    >>> consume(database, "mirror", lambda event: print(event.kind, event.document_id))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kb_resources.store import documents, outbox
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database
from kb_resources.store.records import Event


def subscribe(database: Database, consumer: str, *, scope: str | None = None) -> None:
    """Keep every change from now on for a consumer, of one scope or of all.

    Raises:
        InputError: the name is malformed.
        NotFound: no such scope.
    """
    with database.transaction("pipeline") as conn:
        outbox.subscribe(conn, consumer, _scope_id(conn, scope))


def unsubscribe(database: Database, consumer: str, *, scope: str | None = None) -> None:
    """Keep nothing for it any more; what waited is dropped."""
    with database.transaction("pipeline") as conn:
        outbox.unsubscribe(conn, consumer, _scope_id(conn, scope))


def consumers(database: Database) -> list[dict[str, Any]]:
    """All consumers with what waits for them: one that never acknowledges shows here."""
    with database.transaction("pipeline") as conn:
        return outbox.consumers(conn)


def waiting(
    database: Database, consumer: str, *, scope: str | None = None, limit: int = 100
) -> Sequence[Event]:
    """Changes not acknowledged, oldest first; the consumer is subscribed where it is new."""
    with database.transaction("pipeline") as conn:
        scope_id = _scope_id(conn, scope)
        outbox.subscribe(conn, consumer, scope_id)
        return outbox.waiting(conn, consumer, scope_id, limit=limit)


def acknowledge(
    database: Database, consumer: str, event_ids: Iterable[str], *, scope: str | None = None
) -> int:
    """Forget changes that were dealt with; returns how many."""
    with database.transaction("pipeline") as conn:
        return outbox.acknowledge(conn, consumer, event_ids, _scope_id(conn, scope))


def consume(
    database: Database,
    consumer: str,
    callback: outbox.Callback,
    *,
    scope: str | None = None,
    limit: int = 100,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Hand waiting changes to a callable; see `store.outbox.deliver` for what holds."""
    with database.transaction("pipeline") as conn:
        scope_id = _scope_id(conn, scope)
    return outbox.deliver(
        database, consumer, callback, scope_id=scope_id, limit=limit, should_stop=should_stop
    )


def _scope_id(conn: Conn, scope: str | None) -> int | None:
    return None if scope is None else documents.get_scope(conn, scope).scope_id
