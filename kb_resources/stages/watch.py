"""Watches as people ask for them: add, list, pause, resume, remove.

Belongs here: the request, its checks and the use cases around its row. What does not: looking at
the pages (`watch_check`). A watch names one address; with `expand` that address names many.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kb_resources.acquire.fetch_outcome import FetchStopped
from kb_resources.acquire.fetch_policy import FetchPolicy
from kb_resources.acquire.fetch_url import Target, read_url
from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.model import validate_audience, validate_language, validate_scope
from kb_resources.store import documents, watches
from kb_resources.store.documents import Conn
from kb_resources.store.pool import Database
from kb_resources.store.watches import WatchRow

EXPANSIONS = ("none", "sitemap", "feed")
ON_MISSING = ("keep", "remove")
MIN_EVERY_S = 60
MAX_EVERY_S = 365 * 86_400
MAX_PAGES = 50_000


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """An address to watch.

    Attributes:
        scope: scope of its documents; made on first use.
        url: a page, or a sitemap or feed that names pages.
        audiences: who may read them; empty: everyone in the scope.
        every_s: seconds between two looks at a page.
        on_missing: `keep` what a page said when it answers 404 or 410, or `remove` it from search.
        remove_after: so many looks in a row have to find it missing.
        expand: `none`, `sitemap` or `feed`.
        limit: pages at most of a sitemap or feed.
        language: stated language of the pages, or None to detect it.
        actor: who asks.
    """

    scope: str
    url: str
    audiences: tuple[str, ...] = ()
    every_s: int = 6 * 3600
    on_missing: str = "keep"
    remove_after: int = 3
    expand: str = "none"
    limit: int = 1000
    language: str | None = None
    actor: str = "pipeline"


def add(
    database: Database,
    request: WatchRequest,
    *,
    policy: FetchPolicy,
    languages: Sequence[str],
    now: datetime,
) -> WatchRow:
    """Watch an address from now on; its first check is due at once.

    Args:
        database: of the ledger.
        request: what to watch.
        policy: an address that it refuses outright is refused here already.
        languages: languages that a scope made now accepts.
        now: aware time.

    Raises:
        InputError: a value does not fit, or the address is none.
        PolicyError: the policy forbids the address.
        ConflictError: the scope watches it already, alone or as a page of another watch.
    """
    values, target = _values(request, policy, now)
    with database.transaction("pipeline") as conn:
        settings = {"languages": sorted(languages)}
        scope_id = documents.ensure_scope(conn, request.scope, settings).scope_id
        other = watches.watched_by(conn, scope_id, target.url)
        if other is not None or not watches.add(conn, values | {"scope_id": scope_id}):
            raise ConflictError(
                f"{target.url} is watched already" + (f" (by watch {other})." if other else "."),
                next_step="Look with kb watch list; remove that watch first.",
            )
        return _started(conn, values, scope_id, target, request.scope, now)


def declare(
    database: Database,
    request: WatchRequest,
    *,
    policy: FetchPolicy,
    languages: Sequence[str],
    now: datetime,
) -> WatchRow:
    """`add`, or bring the watch of that address in line with the request; it stays paused.

    Raises:
        InputError, PolicyError: as `add`.
        NotFound: somebody removed it in this very moment.
        ConflictError: the address is a page of another watch, or expanded differently there.
    """
    target = _target(request, policy)
    with database.transaction("pipeline") as conn:
        found = watches.find(conn, request.scope, url=target.url)
    if not found:
        return add(database, request, policy=policy, languages=languages, now=now)
    if found[0].expand != request.expand:
        raise ConflictError(
            f"{target.url} is watched already with --expand {found[0].expand}.",
            next_step=f"Remove watch {found[0].watch_id} first.",
        )
    values, _ = _values(request, policy, now)
    with database.transaction("pipeline") as conn:
        watches.change(conn, values | {"watch_id": found[0].watch_id})
        return _one(conn, found[0].watch_id, request.scope)


def list_(database: Database, scope: str | None = None) -> list[WatchRow]:
    """Watches of a scope, oldest first; of all scopes for None."""
    with database.transaction("pipeline") as conn:
        return watches.find(conn, None if scope is None else validate_scope(scope))


def show(
    database: Database, watch_id: str, scope: str, *, limit: int = 1000
) -> tuple[WatchRow, list[dict[str, Any]]]:
    """One watch and its pages; NotFound where the scope has no such watch."""
    with database.transaction("pipeline") as conn:
        row = _one(conn, watch_id, scope)
        return row, watches.pages(conn, watch_id, limit)


def pause(database: Database, watch_id: str, scope: str) -> WatchRow:
    """Ask its pages no more until `resume`; pausing twice is no error."""
    return _set_state(database, watch_id, scope, "paused")


def resume(database: Database, watch_id: str, scope: str) -> WatchRow:
    """Ask its pages again, from where it was."""
    return _set_state(database, watch_id, scope, "active")


def remove(database: Database, watch_id: str, scope: str) -> WatchRow:
    """Forget a watch; what it brought stays until it is removed by itself."""
    with database.transaction("pipeline") as conn:
        row = _one(conn, watch_id, scope)
        watches.delete(conn, watch_id)
    return replace(row, state="removed")


def _set_state(database: Database, watch_id: str, scope: str, state: str) -> WatchRow:
    with database.transaction("pipeline") as conn:
        _one(conn, watch_id, scope)
        watches.set_state(conn, watch_id, state)
        return _one(conn, watch_id, scope)


def _one(conn: Conn, watch_id: str, scope: str) -> WatchRow:
    rows = watches.find(conn, validate_scope(scope), watch_id)
    if not rows:
        raise NotFound(
            f"There is no watch {watch_id!r} in {scope!r}.", next_step="Look with kb watch list."
        )
    return rows[0]


def _started(
    conn: Conn, values: dict[str, Any], scope_id: int, target: Target, scope: str, now: datetime
) -> WatchRow:
    if values["expand"] == "none":
        page = (target.url, target.origin, "")
        watches.add_pages(conn, values["watch_id"], scope_id, [page], now)
    return watches.find(conn, scope, values["watch_id"])[0]


def _values(
    request: WatchRequest, policy: FetchPolicy, now: datetime
) -> tuple[dict[str, Any], Target]:
    _check(request)
    target = _target(request, policy)
    return {
        "watch_id": secrets.token_hex(6),
        "url": target.url,
        "host": target.origin,
        "expand": request.expand,
        "audiences": sorted({validate_audience(name) for name in request.audiences}),
        "language": request.language and validate_language(request.language),
        "every_s": request.every_s,
        "on_missing": request.on_missing,
        "remove_after": request.remove_after,
        "page_limit": request.limit,
        "actor": request.actor,
        "now": now,
    }, target


def _target(request: WatchRequest, policy: FetchPolicy) -> Target:
    validate_scope(request.scope)
    try:
        target = read_url(request.url)
    except FetchStopped as stopped:
        refusal = stopped.refusal
        raise InputError(refusal.reason, next_step=refusal.next_step) from stopped
    try:
        policy.check_target(target)
    except FetchStopped as stopped:
        refusal = stopped.refusal
        raise PolicyError(refusal.reason, next_step=refusal.next_step) from stopped
    return target


def _check(request: WatchRequest) -> None:
    if request.expand not in EXPANSIONS:
        _bad("expand", f"one of {', '.join(EXPANSIONS)}")
    if request.on_missing not in ON_MISSING:
        _bad("on_missing", f"one of {', '.join(ON_MISSING)}")
    if not MIN_EVERY_S <= request.every_s <= MAX_EVERY_S:
        _bad("every", "from one minute to one year")
    if not 1 <= request.remove_after <= 100:
        _bad("after", "from 1 to 100 looks")
    if not 1 <= request.limit <= MAX_PAGES:
        _bad("limit", f"from 1 to {MAX_PAGES:,} pages")


def _bad(name: str, allowed: str) -> None:
    raise InputError(f"{name} does not fit.", next_step=f"Give {allowed}.")
