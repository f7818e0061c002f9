"""`AsyncKnowledgeBase`: the same calls as `KnowledgeBase`, awaited.

Example:
    >>> from kb import AsyncKnowledgeBase
    >>> async with AsyncKnowledgeBase() as kb:
    ...     found = await kb.search("How many days of leave?", scope="acme")

Belongs here: running calls on threads of its own, so that the event loop goes on. What does not:
any call's own work. Searching waits for Postgres and computes in native code, which both let other
threads run; an async driver would not make it faster.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from kb.client import KnowledgeBase

if TYPE_CHECKING:
    from kb_resources.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[KnowledgeBase, P], R],
) -> Callable[Concatenate[AsyncKnowledgeBase, P], Coroutine[Any, Any, R]]:
    """The method, run on a thread of the knowledge base; its signature and docstring stay."""

    @functools.wraps(method)
    async def call(self: AsyncKnowledgeBase, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.run(functools.partial(method, self.blocking, *args, **kwargs))

    return call


class AsyncKnowledgeBase:
    """Searches and reads one installation from a coroutine; an async context manager.

    A call that is cancelled goes on in its thread and its result is dropped.

    Args:
        settings: default: read from the environment.
        principal_id: who asks, for the logs.
        threads: calls at once, at most; not more than the connections of the reading role.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        principal_id: str = "cli:local",
        threads: int = 8,
    ) -> None:
        self.blocking = KnowledgeBase(settings, principal_id=principal_id)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="kb")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections and the model, once the calls under way are done."""
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.blocking.close)

    async def run(self, call: Callable[[], R]) -> R:
        """Any blocking call on this knowledge base's threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    search = _awaited(KnowledgeBase.search)
    embed = _awaited(KnowledgeBase.embed)
    supports_hybrid = _awaited(KnowledgeBase.supports_hybrid)
    joined = _awaited(KnowledgeBase.joined)
    warm = _awaited(KnowledgeBase.warm)
    ask = _awaited(KnowledgeBase.ask)
    passage = _awaited(KnowledgeBase.passage)
    context = _awaited(KnowledgeBase.context)
    outline = _awaited(KnowledgeBase.outline)
    body = _awaited(KnowledgeBase.body)
    explain = _awaited(KnowledgeBase.explain)
    documents = _awaited(KnowledgeBase.documents)
    document = _awaited(KnowledgeBase.document)
    history = _awaited(KnowledgeBase.history)
    intervals = _awaited(KnowledgeBase.intervals)
    diff = _awaited(KnowledgeBase.diff)
    cite_check = _awaited(KnowledgeBase.cite_check)
    keep_citation = _awaited(KnowledgeBase.keep_citation)
    citations = _awaited(KnowledgeBase.citations)
    check_citations = _awaited(KnowledgeBase.check_citations)
    drop_citation = _awaited(KnowledgeBase.drop_citation)
    searches = _awaited(KnowledgeBase.searches)
    trace = _awaited(KnowledgeBase.trace)
    replay = _awaited(KnowledgeBase.replay)
