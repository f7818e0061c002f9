"""The outbox: changes of the index, kept for each consumer until it has dealt with them.

Belongs here: rows of kb.consumer, kb.event and kb.delivery in the caller's transaction, and
delivering them to a callable at least once. What does not: writing events, which triggers do in the
transaction of the change (migration 0010).
The pattern: https://microservices.io/patterns/data/transactional-outbox.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from psycopg.rows import class_row

from kb_resources.store.checks import cause, check_consumer, no_consumer
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database
from kb_resources.store.records import Event
from kb_resources.store.sql import rows, sql

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Callback = Callable[[Event], None]
"""Deals with one change; returning means that it is done, raising that it comes again."""


def subscribe(conn: Conn, consumer: str, scope_id: int | None = None) -> None:
    """Keep every change from now on for a consumer: of one scope, or of all."""
    conn.execute(sql("subscribe"), {"name": check_consumer(consumer), "scope_id": scope_id})


def unsubscribe(conn: Conn, consumer: str, scope_id: int | None = None) -> None:
    """Keep nothing for it any more."""
    conn.execute(sql("unsubscribe"), {"name": check_consumer(consumer), "scope_id": scope_id})
    conn.execute(sql("drop_told_events"), {"event_ids": None})


def consumer_id(conn: Conn, consumer: str, scope_id: int | None = None) -> int | None:
    """Its key, or None where it never subscribed."""
    given = {"name": check_consumer(consumer), "scope_id": scope_id}
    row = conn.execute(sql("find_consumer"), given).fetchone()
    return int(row[0]) if row else None


def consumers(conn: Conn) -> list[dict[str, Any]]:
    """All consumers: name, scope, how much waits and since when, most attempts of one event."""
    return rows(conn, "list_consumers")


def waiting(
    conn: Conn, consumer: str, scope_id: int | None = None, *, limit: int = 100
) -> list[Event]:
    """Changes the consumer has not acknowledged, oldest first; NotFound for an unknown one."""
    key = consumer_id(conn, consumer, scope_id)
    if key is None:
        raise no_consumer(consumer)
    with conn.cursor(row_factory=class_row(Event)) as cursor:
        return cursor.execute(
            sql("waiting_events"), {"consumer_id": key, "limit": limit}
        ).fetchall()


def acknowledge(
    conn: Conn, consumer: str, event_ids: Iterable[str], scope_id: int | None = None
) -> int:
    """Forget changes that were dealt with; ids that are none are passed over."""
    key = consumer_id(conn, consumer, scope_id)
    known = [each for each in event_ids if _UUID.fullmatch(each)]
    if key is None or not known:
        return 0
    given = {"consumer_id": key, "event_ids": known}
    done = conn.execute(sql("acknowledge_events"), given).rowcount
    conn.execute(sql("drop_told_events"), given)
    return done


def deliver(
    database: Database,
    consumer: str,
    callback: Callback,
    *,
    scope_id: int | None = None,
    limit: int = 100,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Hand waiting changes to a callable, one by one, each acknowledged after it returned.

    At least once: a consumer that dies after the callback and before the acknowledgement gets the
    same event, with the same id, again. Let one process at a time deliver to a consumer, or its
    events may come twice and out of order.

    Args:
        database: whose outbox.
        consumer: its name; it is subscribed where it is new.
        callback: see `Callback`.
        scope_id: of which scope, None for all.
        limit: changes at most.
        should_stop: asked before each change.

    Returns:
        Changes dealt with.

    Raises:
        Exception: what the callback raised. The change is kept, with the cause and one attempt
            more, and so are those after it.
    """
    with database.transaction("pipeline") as conn:
        subscribe(conn, consumer, scope_id)
        events = waiting(conn, consumer, scope_id, limit=limit)
        key = consumer_id(conn, consumer, scope_id)
    done = 0
    for event in events:
        if should_stop():
            break
        try:
            callback(event)
        except Exception as error:
            given = {"consumer_id": key, "event_id": event.event_id, "error": cause(error)}
            with database.transaction("pipeline") as conn:
                conn.execute(sql("refuse_event"), given)
            raise
        with database.transaction("pipeline") as conn:
            acknowledge(conn, consumer, [event.event_id], scope_id)
        done += 1
    return done
