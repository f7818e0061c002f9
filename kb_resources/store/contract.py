"""What every knowledge store offers, whatever it keeps its rows in.

Belongs here: the protocol, and the two ways to say which scope is meant. What does not: an
implementation (`memory`, the reference; `postgres`), which one suite tests alike
(tests/contract). After the store contract of the octabits knowledge package (O-09, O-16).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from kb_resources.errors import PolicyError
from kb_resources.model import validate_scope
from kb_resources.store.records import (
    DocumentPage,
    Edition,
    Event,
    Found,
    Missing,
    PassageRecord,
    Published,
    StoredDocument,
    Vector,
    VectorSpace,
    Work,
)
from kb_resources.store.scopes import Scope, ScopeSettings


class ScopeRegistry(Protocol):
    """Scopes by name: made, changed, closed, never widened."""

    def create(
        self,
        name: str,
        *,
        title: str | None = None,
        settings: ScopeSettings | None = None,
        actor: str = "store",
    ) -> Scope:
        """Make a scope; ConflictError `scope_exists` where the name is taken.

        InputError `unknown_language` where no text is ever told to be in one that it names.
        """
        ...

    def get(self, name: str) -> Scope:
        """The scope or NotFound."""
        ...

    def all(self) -> list[Scope]:
        """All scopes, by name."""
        ...

    def configure(self, name: str, settings: ScopeSettings, *, actor: str = "store") -> Scope:
        """Change what holds for documents from now on; new languages as in `create`."""
        ...

    def rename(self, name: str, title: str | None, *, actor: str = "store") -> Scope:
        """Change the title; the name is a key and stays."""
        ...

    def close(self, name: str, *, actor: str = "store") -> Scope:
        """Take no more documents; what is there stays readable."""
        ...

    def reopen(self, name: str, *, actor: str = "store") -> Scope:
        """Take documents again."""
        ...


class KnowledgeStore(Protocol):
    """Documents, passages and vectors of scopes.

    Every method names its scope with `scope`; None is the scope the store is pinned to
    (`pinned`), and is refused by a store that is pinned to none. `audiences` are the names a
    reader holds; None shows everything (the system's own view).

    Raises:
        ScopeRequired: no scope is named and none is pinned.
        InputError: a name is malformed.
        NotFound: no such scope.
    """

    @property
    def space(self) -> VectorSpace:
        """The model that vectors are by."""
        ...

    @property
    def scopes(self) -> ScopeRegistry:
        """The scopes of this store."""
        ...

    def put(self, edition: Edition, *, scope: str | None = None) -> Published:
        """Publish a version: all of it or nothing, in one step for every reader.

        Raises:
            PolicyError: not cleared, a limit is passed, the document was removed, the scope closed.
        """
        ...

    def get(
        self, document_id: str, *, scope: str | None = None, audiences: Sequence[str] | None = ()
    ) -> StoredDocument | None:
        """The document as it holds now, None where the reader sees none."""
        ...

    def documents(
        self,
        *,
        scope: str | None = None,
        audiences: Sequence[str] | None = (),
        limit: int = 100,
        cursor: str | None = None,
    ) -> DocumentPage:
        """Documents that hold now, newest first; new ones never shift a page already begun."""
        ...

    def count(self, *, scope: str | None = None) -> tuple[int, int]:
        """Documents that hold now, and their passages."""
        ...

    def set_audiences(
        self, document_id: str, audiences: Sequence[str], *, scope: str | None = None
    ) -> bool:
        """Decide who may read a document; False where there is none."""
        ...

    def remove(self, document_id: str, *, scope: str | None = None) -> bool:
        """Take a document out of search, passages and vectors with it; its history stays.

        Returns:
            False where there is none, or none any more: no error.
        """
        ...

    def restore(self, document_id: str, *, scope: str | None = None) -> bool:
        """Bring a removed document back; False where nothing is removed."""
        ...

    def remove_all(self, *, confirm: str, scope: str | None = None) -> int:
        """Remove every document; `confirm` repeats the scope's name, or nothing happens."""
        ...

    def passage(
        self, passage_id: str, *, scope: str | None = None, audiences: Sequence[str] | None = ()
    ) -> PassageRecord | None:
        """A passage of a version that holds now, None where the reader sees none."""
        ...

    def passages(
        self,
        document_id: str,
        *,
        scope: str | None = None,
        audiences: Sequence[str] | None = (),
        under: Sequence[str] = (),
    ) -> tuple[PassageRecord, ...]:
        """Passages of the version that holds now, in reading order.

        Args:
            document_id: the document.
            scope: see the class.
            audiences: see the class.
            under: only those at or below this heading path.
        """
        ...

    def search(
        self,
        *,
        scope: str | None = None,
        text: str | None = None,
        vector: Vector | None = None,
        audiences: Sequence[str] | None = (),
        k: int = 5,
        as_of: datetime | None = None,
        historical: bool = False,
        document_ids: Sequence[str] | None = None,
        min_vector_score: float | None = None,
    ) -> tuple[Found, ...]:
        """Passages by words, by vector, or by both; filters act before ranking.

        Neither text nor vector gives nothing.

        Args:
            scope: see the class.
            text: words in any order.
            vector: `(dim,) float32`, L2-normalised.
            audiences: see the class.
            k: passages at most, 1 to 100.
            as_of: aware; what held then instead of now.
            historical: versions of other times too.
            document_ids: only of these documents; an empty list finds nothing.
            min_vector_score: passages whose vector is farther are left out.
        """
        ...

    def missing(self, document_id: str, *, scope: str | None = None) -> tuple[Missing, ...]:
        """Texts of the version that holds now that have no vector, in reading order."""
        ...

    def add_vectors(
        self, document_id: str, vectors: Mapping[str, Vector], *, scope: str | None = None
    ) -> int:
        """Add vectors of texts that wait; of texts that meanwhile are others they are dropped.

        Returns:
            How many passages still wait.

        Raises:
            InputError: a vector is none, or there are too many; nothing was written.
        """
        ...

    def work(self, document_id: str, *, scope: str | None = None) -> Work | None:
        """Where a document's embedding stands; None where there is no document."""
        ...

    def works(self, *, scope: str | None = None, limit: int = 100) -> tuple[Work, ...]:
        """Documents that are not ready, oldest first."""
        ...

    def claim(
        self, *, holder: str, lease_s: float = 300.0, scope: str | None = None
    ) -> Work | None:
        """Take the oldest document that waits; it is `processing` for `lease_s` seconds."""
        ...

    def settle(
        self,
        document_id: str,
        *,
        holder: str,
        error: str = "",
        attempts: int = 3,
        scope: str | None = None,
    ) -> Work:
        """Give a claimed document back: ready, or to be tried again, or failed with its cause.

        Args:
            document_id: the document.
            holder: who claimed it.
            error: why it failed; empty where it did not.
            attempts: tries after which it counts as failed.
            scope: see the class.

        Raises:
            ConflictError: somebody else holds it, or nobody.
        """
        ...

    def requeue(self, document_id: str, *, scope: str | None = None) -> bool:
        """Try a failed document again from the start; False where it is not failed."""
        ...

    def recover(self, *, scope: str | None = None, attempts: int = 3) -> tuple[Work, ...]:
        """Documents left in `processing` by a worker that is gone: waiting again, or failed."""
        ...

    def subscribe(self, consumer: str, *, scope: str | None = None) -> None:
        """Keep every later change of the scope for a consumer; known ones are left as they are."""
        ...

    def unsubscribe(self, consumer: str, *, scope: str | None = None) -> None:
        """Keep nothing for a consumer any more."""
        ...

    def events(
        self, consumer: str, *, scope: str | None = None, limit: int = 100
    ) -> tuple[Event, ...]:
        """Changes the consumer has not acknowledged, oldest first."""
        ...

    def acknowledge(
        self, consumer: str, event_ids: Iterable[str], *, scope: str | None = None
    ) -> int:
        """Forget changes the consumer has dealt with; returns how many."""
        ...


def scope_of(scope: str | None, pinned: str | None) -> str:
    """The scope a call means.

    Raises:
        ScopeRequired: none is named and none is pinned.
        PolicyError: another than the pinned one is named.
    """
    if pinned is None:
        return validate_scope(scope)
    if scope is not None and validate_scope(scope) != pinned:
        raise PolicyError(
            f"This store is pinned to the scope {pinned!r}.",
            next_step=f"Open one that is not, for {scope!r}.",
            code="scope_pinned",
        )
    return pinned
