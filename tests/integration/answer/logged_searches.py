"""Searches that are logged, who makes them, and how a test reads the rows or asks once more.

The documents that are searched come from the fixture `library`.
"""

from __future__ import annotations

from typing import Any

from kb_resources.answer.replay import Replay, replay
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever
from kb_resources.retrieve.log import RetrievalLog
from kb_resources.store import logs
from tests.integration.answer.conftest import KEY
from tests.integration.search.conftest import World

WHO = Principal("test:ann")
ADMIN = Principal("test:root", roles=frozenset({"admin"}))


def logged(world: World, **given: Any) -> Retriever:
    return world.retriever(log=RetrievalLog(KEY), **given)


def search(world: World, query: str, **given: Any) -> str:
    given.setdefault("principal", WHO)
    return logged(world).search(query, scope=world.scope, **given).correlation_id


def rows(world: World, correlation_id: str) -> list[dict[str, Any]]:
    with world.database.transaction("app", world.scope) as conn:
        return logs.retrievals(conn, correlation_id)


def again(world: World, made: str, question: str, **given: Any) -> Replay:
    given.setdefault("principal", ADMIN)
    searcher = given.pop("searcher", None) or logged(world)
    return replay(world.database, searcher, KEY, made, question, scope=world.scope, **given)
