"""Watches, their pages and the hosts they lie on.

Belongs here: those rows in the caller's transaction. What does not: fetching, and what an outcome
means (`stages.watch_outcome`). Claims are leases: whoever dies gives back by time, as in
https://www.postgresql.org/docs/current/sql-select.html#SQL-FOR-UPDATE-SHARE described for queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql


@dataclass(frozen=True, slots=True)
class WatchRow:
    """A watch with sums of its pages; times are aware, durations in seconds.

    `states` counts pages by state: new, current, missing, failing, refused, removed.
    """

    watch_id: str
    scope: str
    url: str
    expand: str
    audiences: list[str]
    language: str | None
    every_s: int
    on_missing: str
    remove_after: int
    page_limit: int
    state: str
    created_by: str
    created_at: datetime
    reason: str | None
    checked_at: datetime | None
    next_check_at: datetime | None
    changed_at: datetime | None
    pages: int
    states: dict[str, int]


@dataclass(frozen=True, slots=True)
class WatchedPage:
    """A page claimed for a check, with what its watch says."""

    page_key: int
    watch_id: str
    scope: str
    scope_id: int
    url: str
    host: str
    document_id: str | None
    state: str
    final_url: str | None
    etag: str | None
    last_modified: str | None
    digest: str | None
    text_digest: str | None
    failures: int
    missing: int
    audiences: list[str]
    language: str | None
    every_s: int
    on_missing: str
    remove_after: int


@dataclass(frozen=True, slots=True)
class WatchedListing:
    """A sitemap or feed claimed for a check."""

    watch_id: str
    scope: str
    scope_id: int
    url: str
    host: str
    expand: str
    every_s: int
    page_limit: int
    final_url: str | None
    etag: str | None
    last_modified: str | None
    failures: int


@dataclass(frozen=True, slots=True)
class HostRow:
    """A claimed host with its robots.txt, None where it is not known."""

    host: str
    robots: str | None
    robots_until: datetime | None


@dataclass(frozen=True, slots=True)
class Claim:
    """What a check may work on until its lease ends."""

    hosts: list[HostRow]
    pages: list[WatchedPage]
    listings: list[WatchedListing]


def add(conn: Conn, values: Mapping[str, Any]) -> bool:
    """Add a watch; False where the scope watches that address already."""
    return conn.execute(sql("add_watch"), values).fetchone() is not None


def change(conn: Conn, values: Mapping[str, Any]) -> None:
    """Take over what is said about a watch now."""
    conn.execute(sql("change_watch"), values)


def find(
    conn: Conn, scope: str | None, watch_id: str | None = None, url: str | None = None
) -> list[WatchRow]:
    """Watches of a scope (None: all), oldest first; one where its id or address is given."""
    with conn.cursor(row_factory=class_row(WatchRow)) as cursor:
        given = {"scope": scope, "watch_id": watch_id, "url": url}
        return cursor.execute(sql("watches"), given).fetchall()


def pages(conn: Conn, watch_id: str, limit: int) -> list[dict[str, Any]]:
    """Pages of a watch in the order they were found."""
    return rows(conn, "watch_pages", {"watch_id": watch_id, "limit": limit})


def set_state(conn: Conn, watch_id: str, state: str) -> None:
    """Pause or resume a watch."""
    conn.execute(sql("set_watch_state"), {"watch_id": watch_id, "state": state})


def delete(conn: Conn, watch_id: str) -> None:
    """Forget a watch and its pages; documents stay."""
    conn.execute(sql("delete_watch"), {"watch_id": watch_id})


def hurry(conn: Conn, watches: Sequence[str], now: datetime) -> None:
    """Make watches due."""
    conn.execute(sql("hurry_watches"), {"watches": list(watches), "now": now})


def add_pages(
    conn: Conn,
    watch_id: str,
    scope_id: int,
    found: Sequence[tuple[str, str, str]],
    now: datetime,
) -> None:
    """Add pages as (address, host, stated change); known ones are due when that changed."""
    conn.execute(
        sql("add_watched_pages"),
        {
            "watch_id": watch_id,
            "scope_id": scope_id,
            "urls": [item[0] for item in found],
            "hosts": [item[1] for item in found],
            "changes": [item[2] for item in found],
            "now": now,
        },
    )


def count_pages(conn: Conn, watch_id: str) -> int:
    """How many pages a watch has."""
    row = conn.execute(sql("count_watched_pages"), {"watch_id": watch_id}).fetchone()
    return int(row[0]) if row else 0


def watched_by(conn: Conn, scope_id: int, url: str) -> str | None:
    """The watch whose page an address is in a scope."""
    row = conn.execute(sql("page_watched_by"), {"scope_id": scope_id, "url": url}).fetchone()
    return str(row[0]) if row else None


def claim(
    conn: Conn,
    *,
    now: datetime,
    lease: datetime,
    hosts: int,
    of_host: int,
    limit: int,
    watches: Sequence[str] | None,
) -> Claim:
    """Take what is due, so that nobody else does until `lease`.

    Args:
        conn: inside a transaction of the pipeline role.
        now: what counts as due.
        lease: until when it is ours.
        hosts: hosts at most.
        of_host: pages of one host at most.
        limit: pages at most.
        watches: only of these, or None.
    """
    given: dict[str, Any] = {
        "now": now,
        "lease": lease,
        "watches": None if watches is None else list(watches),
        "of_host": of_host,
        "limit": limit,
        "hosts": hosts,
    }
    with conn.cursor(row_factory=class_row(HostRow)) as cursor:
        claimed = cursor.execute(sql("claim_hosts"), given).fetchall()
    given["hosts"] = [row.host for row in claimed]
    with conn.cursor(row_factory=class_row(WatchedListing)) as cursor:
        listings = cursor.execute(sql("claim_listings"), given).fetchall()
    with conn.cursor(row_factory=class_row(WatchedPage)) as cursor:
        due = cursor.execute(sql("claim_watched_pages"), given).fetchall()
    return Claim(claimed, due, listings)


def release_host(conn: Conn, host: str, busy_until: datetime) -> None:
    """Let others ask the host from then on."""
    conn.execute(sql("release_host"), {"host": host, "busy_until": busy_until})


def save_robots(conn: Conn, host: str, text: str, until: datetime) -> None:
    """Keep a host's robots.txt."""
    conn.execute(
        sql("save_robots"),
        {"host": host, "robots": text.replace("\x00", ""), "robots_until": until},
    )


def give_back(conn: Conn, page_keys: Sequence[int], watches: Sequence[str], now: datetime) -> None:
    """What there was no time for is due again."""
    conn.execute(sql("give_back_pages"), {"pages": list(page_keys), "now": now})
    conn.execute(sql("give_back_listings"), {"watches": list(watches), "now": now})


def save_listing(conn: Conn, values: Mapping[str, Any]) -> None:
    """Store what a check of a sitemap or feed found."""
    conn.execute(sql("save_listing"), values)


def save_pages(conn: Conn, values: Sequence[Mapping[str, Any]]) -> None:
    """Store what checks of pages found."""
    with conn.cursor() as cursor:
        cursor.executemany(sql("save_page"), values)


def save_change(conn: Conn, values: Mapping[str, Any]) -> None:
    """Store which text of a page was taken as a version."""
    conn.execute(sql("save_page_change"), values)
