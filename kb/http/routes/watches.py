"""Watched addresses of a scope.

Belongs here: the watch list over HTTP. What does not: looking at pages (`stages.watch_check`, which
the sensor and `kb watch check` run).
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from kb.access.identity import Identity
from kb.http.guard import Editor
from kb.http.schemas import Input, Name, Names, Page, Text
from kb.http.services import Services, ServicesDep
from kb_resources.compose import fetch_policy
from kb_resources.errors import NotFound
from kb_resources.stages import watch as watching
from kb_resources.store import access, watches
from kb_resources.store import documents as ledger
from kb_resources.store.watches import WatchRow

router = APIRouter(prefix="/api/v1/watches", tags=["watches"])

WatchId = Annotated[str, Path(pattern="^[a-z0-9]{1,64}$")]


class WatchRequestIn(Input):
    """An address to be looked at again and again."""

    scope: Name
    url: Annotated[Text, Field(min_length=1)]
    audiences: Names = Field(default_factory=list, description="Empty: everyone in the scope.")
    every_s: Annotated[int, Field(ge=60, le=366 * 86400)] = 6 * 3600
    on_missing: Literal["keep", "remove"] = "keep"
    remove_after: Annotated[int, Field(ge=1, le=100)] = 3
    expand: Literal["none", "sitemap", "feed"] = "none"
    limit: Annotated[int, Field(ge=1, le=100_000)] = 1000
    language: Name | None = None


class WatchChange(Input):
    """Whether its pages are looked at."""

    state: Literal["active", "paused"]


class WatchOut(BaseModel):
    """A watch with sums of its pages."""

    watch_id: str
    scope: str
    url: str
    expand: str
    audiences: list[str]
    language: str | None
    every_s: int
    on_missing: str
    remove_after: int
    state: str
    created_by: str
    created_at: str
    reason: str | None
    checked_at: str | None
    next_at: str | None
    changed_at: str | None
    pages: int
    states: dict[str, int]


@router.get("", response_model=Page[WatchOut])
async def list_watches(identity: Editor, services: ServicesDep, scope: Name) -> Any:
    """Watches of a scope, oldest first."""
    name = identity.use_scope(scope)

    def work() -> list[WatchRow]:
        database = services.capabilities().database
        with database.transaction("pipeline") as conn:
            ledger.get_scope(conn, name)
            return watches.find(conn, name)

    rows = await services.work.run(work)
    shown = [_json(row) for row in rows if _may_see(identity, row)]
    return {"items": shown, "next_cursor": None}


@router.post("", status_code=201, response_model=WatchOut)
async def add_watch(given: WatchRequestIn, identity: Editor, services: ServicesDep) -> Any:
    """Watch an address from now on; its first look is due at once."""
    request = watching.WatchRequest(
        scope=identity.use_scope(given.scope),
        url=given.url,
        audiences=identity.publish_to(given.audiences),
        every_s=given.every_s,
        on_missing=given.on_missing,
        remove_after=given.remove_after,
        expand=given.expand,
        limit=given.limit,
        language=given.language,
        actor=identity.actor,
    )

    def work() -> WatchRow:
        row = watching.add(
            services.capabilities().database,
            request,
            policy=fetch_policy(services.settings),
            languages=services.settings.languages,
            now=services.clock(),
        )
        _note(services, identity, "watch_added", row)
        return row

    return _json(await services.work.run(work))


@router.patch("/{watch_id}", response_model=WatchOut)
async def change_watch(
    watch_id: WatchId, given: WatchChange, identity: Editor, services: ServicesDep
) -> Any:
    """Pause a watch, or resume it."""

    def work() -> WatchRow:
        row = _own(services, identity, watch_id)
        act = watching.pause if given.state == "paused" else watching.resume
        changed = act(services.capabilities().database, watch_id, row.scope)
        _note(services, identity, f"watch_{given.state}", changed)
        return changed

    return _json(await services.work.run(work))


@router.delete("/{watch_id}", status_code=204)
async def remove_watch(watch_id: WatchId, identity: Editor, services: ServicesDep) -> None:
    """Forget a watch; the documents it brought stay."""

    def work() -> None:
        row = _own(services, identity, watch_id)
        watching.remove(services.capabilities().database, watch_id, row.scope)
        _note(services, identity, "watch_removed", row)

    await services.work.run(work)


def _own(services: Services, identity: Identity, watch_id: str) -> WatchRow:
    """A watch of a scope one may use, for readers one is among; else NotFound."""
    with services.capabilities().database.transaction("pipeline") as conn:
        rows = watches.find(conn, None, watch_id)
    in_scope = [row for row in rows if identity.scopes is None or row.scope in identity.scopes]
    if not in_scope or not _may_see(identity, in_scope[0]):
        raise NotFound(f"There is no watch {watch_id!r}.", next_step="List the watches.")
    return in_scope[0]


def _note(services: Services, identity: Identity, event: str, row: WatchRow) -> None:
    """Who changed the list; what a watch brings is logged with its documents."""
    with services.database.transaction("app") as conn:
        access.add_event(
            conn, actor=identity.actor, event=event, subject=row.watch_id, scope=row.scope
        )


def _may_see(identity: Identity, row: WatchRow) -> bool:
    held = identity.visible_audiences()
    return held is None or not row.audiences or bool(set(held) & set(row.audiences))


def _json(row: WatchRow) -> dict[str, Any]:
    values = asdict(row) | {"next_at": row.next_check_at}
    return {
        name: value.isoformat() if isinstance(value := values[name], datetime) else value
        for name in WatchOut.model_fields
    }
