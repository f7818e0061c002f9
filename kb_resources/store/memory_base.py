"""What the reference store's parts share: scopes, their documents, who is told of changes.

Belongs here: state and looking things up in it. What does not: the contract's methods (`memory`,
`memory_work`).
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from kb_resources.language import check_labels
from kb_resources.model import validate_scope
from kb_resources.store import memory_search
from kb_resources.store.memory_rows import Document
from kb_resources.store.records import Event, Limits, VectorSpace
from kb_resources.store.scopes import Scope, ScopeSettings, check_title, exists_already, no_scope


@dataclass(slots=True)
class ScopeData:
    """One scope with all that is in it."""

    scope: Scope
    documents: dict[str, Document] = field(default_factory=dict)
    outbox: dict[str, dict[str, Event]] = field(default_factory=dict)
    average_length: float | None = None


class MemoryRegistry:
    """Scopes by name, in a dictionary."""

    def __init__(self, held: dict[str, ScopeData], clock: Callable[[], datetime]) -> None:
        self._held = held
        self._clock = clock

    def create(
        self,
        name: str,
        *,
        title: str | None = None,
        settings: ScopeSettings | None = None,
        actor: str = "store",  # noqa: ARG002 - nobody reads a log that dies with the process
    ) -> Scope:
        """See `contract.ScopeRegistry`."""
        made = Scope(validate_scope(name), check_title(title), settings or ScopeSettings())
        check_labels(made.settings.languages)
        if name in self._held:
            raise exists_already(name)
        self._held[name] = ScopeData(made)
        return made

    def get(self, name: str) -> Scope:
        """See `contract.ScopeRegistry`."""
        return self._of(name).scope

    def all(self) -> list[Scope]:
        """See `contract.ScopeRegistry`."""
        return [self._held[name].scope for name in sorted(self._held)]

    def configure(self, name: str, settings: ScopeSettings, *, actor: str = "store") -> Scope:  # noqa: ARG002
        """See `contract.ScopeRegistry`."""
        held = self.get(name).settings.languages
        check_labels(code for code in settings.languages if code not in held)
        return self._change(name, settings=settings)

    def rename(self, name: str, title: str | None, *, actor: str = "store") -> Scope:  # noqa: ARG002
        """See `contract.ScopeRegistry`."""
        return self._change(name, title=check_title(title))

    def close(self, name: str, *, actor: str = "store") -> Scope:  # noqa: ARG002
        """See `contract.ScopeRegistry`."""
        return self._change(name, closed_at=self.get(name).closed_at or self._clock())

    def reopen(self, name: str, *, actor: str = "store") -> Scope:  # noqa: ARG002
        """See `contract.ScopeRegistry`."""
        return self._change(name, closed_at=None)

    def _change(self, name: str, **values: object) -> Scope:
        held = self._of(name)
        held.scope = replace(held.scope, **values)  # type: ignore[arg-type]
        return held.scope

    def _of(self, name: str) -> ScopeData:
        if validate_scope(name) not in self._held:
            raise no_scope(name)
        return self._held[name]


class MemoryBase:
    """State and settings of a store in memory.

    Args:
        space: the model vectors are by.
        limits: what one call may carry.
        clock: aware UTC now.
        pinned: the one scope it answers for, or None.
        shared: a store to share everything with.
    """

    def __init__(
        self,
        space: VectorSpace,
        *,
        limits: Limits | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        pinned: str | None = None,
        shared: MemoryBase | None = None,
    ) -> None:
        self._space = space
        self._limits = limits or Limits()
        self._clock = clock
        self._pinned = pinned
        self._held: dict[str, ScopeData] = shared._held if shared else {}  # noqa: SLF001
        self._guard: Any = shared._guard if shared else threading.RLock()  # noqa: SLF001
        self._numbers: Iterator[int] = shared._numbers if shared else memory_search.numbers()  # noqa: SLF001
        self._registry = MemoryRegistry(self._held, clock)

    @property
    def space(self) -> VectorSpace:
        """See `contract.KnowledgeStore`."""
        return self._space

    @property
    def scopes(self) -> MemoryRegistry:
        """See `contract.KnowledgeStore`."""
        return self._registry

    def pinned_to(self, scope: str) -> Self:
        """The same store, answering for one scope only."""
        return type(self)(
            self._space,
            limits=self._limits,
            clock=self._clock,
            pinned=validate_scope(scope),
            shared=self,
        )

    def _announce(self, name: str, held: ScopeData, document: Document) -> None:
        version = document.published()
        for waiting in held.outbox.values():
            made = Event(
                str(uuid.uuid4()),
                name,
                document.document_id,
                "delete" if version is None else "upsert",
                version,
            )
            waiting[made.event_id] = made

    def _in_order(self, name: str) -> list[Document]:
        return sorted(self._scope(name).documents.values(), key=lambda each: each.number)

    def _document(self, name: str, document_id: str) -> Document | None:
        document = self._scope(name).documents.get(document_id)
        return None if document is None or document.removed else document

    def _scope(self, name: str) -> ScopeData:
        if name not in self._held:
            raise no_scope(name)
        return self._held[name]
