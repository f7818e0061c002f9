"""Questions and their vectors: embedding one, or taking one that was embedded before.

Belongs here: which model embeds a question, whether it may, what of a vector brought along fits.
What does not: searching with it (`retriever`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from psycopg import Connection

from kb_resources.errors import InputError, UnavailableError
from kb_resources.model import Principal
from kb_resources.retrieve import asking, expand
from kb_resources.store import search as statements
from kb_resources.store import vectors
from kb_resources.store.documents import no_scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb_resources.retrieve.live import LiveModels
    from kb_resources.store.search import SearchScope


class Database(Protocol):
    """Transactions of the reading role; see `store.pool`."""

    def transaction(
        self, role: Literal["app"], scope: str | Sequence[str] | None = None
    ) -> AbstractContextManager[Connection[Any]]:
        """One transaction that sees the named scopes."""
        ...


class QueryEmbedder(Protocol):
    """The embedding model as far as a search needs it."""

    @property
    def model_id(self) -> str:
        """Identity `name@fingerprint`."""
        ...

    def embed(self, texts: Sequence[str], kind: Literal["query"]) -> NDArray[np.float32]:
        """`(n, dim) float32`, L2-normalised."""
        ...


class Gate(Protocol):
    """Decides what may leave for a model; see `answer.disclosure.EmbeddingGate`."""

    def __call__(
        self,
        embedder: object,
        question: str,
        *,
        scopes: Sequence[str],
        actor: str,
        correlation_id: str,
    ) -> bool:
        """Whether the question may be embedded."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddedQuestion:
    """What `Retriever.embed` gives and `search` takes in place of a text.

    Attributes:
        text: the question; may be empty where only its vector is known.
        vector: `(dim,) float32`, L2-normalised, of the text as a question.
        model_id: identity `name@fingerprint` of the model it is by.
    """

    text: str
    vector: NDArray[np.float32]
    model_id: str


def text_of(query: str | EmbeddedQuestion) -> str:
    """The words of a question."""
    return query if isinstance(query, str) else query.text


def given_vector(
    query: EmbeddedQuestion, mode: str, searched_by: str | None
) -> NDArray[np.float32] | None:
    """The vector that a question brings, checked; None in mode `text`.

    Args:
        query: the question.
        mode: of the search.
        searched_by: identity of the model that the scopes are searched by, or None.

    Raises:
        InputError: hybrid without words, another model's vector, or no unit vector.
    """
    if mode == "text":
        return None
    if mode == "hybrid" and not query.text.strip():
        raise InputError(
            "A hybrid search needs the question's words beside its vector.",
            next_step="Give the text too, or search with mode vector.",
            code="words_missing",
        )
    if query.model_id != searched_by:
        raise InputError(
            f"The vector is by {query.model_id}, searched is by {searched_by or 'no model'}.",
            next_step="Embed the question again with Retriever.embed.",
            code="models_differ",
        )
    length = float((query.vector.astype("f8") ** 2).sum()) ** 0.5
    if query.vector.ndim != 1 or not abs(length - 1) < 0.01:
        raise InputError(
            "The vector is not one of length 1.", next_step="Give what Retriever.embed gave."
        )
    return query.vector


def key_of(
    embedder: QueryEmbedder | None, scopes: Sequence[SearchScope], conn: Connection[Any]
) -> int | None:
    """Key of the model whose vectors are searched; None where the scopes have none by it."""
    live = {scope.live: scope.live_key for scope in scopes if scope.live is not None}
    if embedder is None or not live:
        return None
    known = live.get(embedder.model_id)
    return vectors.model_key(conn, embedder.model_id) if known is None else known


def check_vectors_there(scopes: Sequence[SearchScope]) -> None:
    """Raise where a search by meaning alone would find nothing, whatever is asked.

    Raises:
        UnavailableError: something is published in these scopes, and nothing of it has a vector.
    """
    if any(scope.analyzer for scope in scopes) and not any(scope.live for scope in scopes):
        raise no_vectors(f"{', '.join(scope.name for scope in scopes)} has no vectors")


def no_vectors(what: str) -> UnavailableError:
    """The error for a search by meaning where there is no meaning to be had."""
    return UnavailableError(
        f"{what}, and mode vector finds by them alone.",
        next_step="Search with mode hybrid or text, or give the scope vectors (kb reembed).",
        code="no_vectors",
    )


@dataclass(frozen=True, slots=True)
class Questions:
    """Embeds questions by the model that their scopes are searched by.

    Attributes:
        database: transactions of the reading role.
        live: which model that is.
        gate: whether a question may go to it; None: always.
    """

    database: Database
    live: LiveModels
    gate: Gate | None

    def embedded(
        self,
        query: str | EmbeddedQuestion,
        asked_as: Sequence[str],
        names: Sequence[str],
        mode: str,
        principal: Principal,
        correlation_id: str,
    ) -> tuple[QueryEmbedder | None, NDArray[np.float32] | None]:
        """The model that scopes are searched by, and the question's vector.

        Args:
            query: as it was given.
            asked_as: its words as they can be searched, then its variations.
            names: scopes.
            mode: of the search.
            principal: who asks.
            correlation_id: names the search in the logs.

        Returns:
            Both None for a search by words alone; the vector is `(dim,) float32`, L2-normalised.

        Raises:
            NotFound: the principal does not hold a scope.
            InputError: a vector that was brought does not fit.
            PolicyError: mode `vector`, and the question may not go to the model.
            UnavailableError: mode `vector`, and there is no model; or its endpoint is away.
        """
        if principal.scopes is not None and not principal.scopes.issuperset(names):
            raise no_scope(next(name for name in names if name not in principal.scopes))
        if mode == "text" or (isinstance(query, str) and not asked_as[0]):
            return None, None
        if self.live.any and not self.live.knows(names):
            with self.database.transaction("app", names) as conn:
                self.live.learn(statements.visible_scopes(conn, names).values())
        embedder = self.live.model(names, mode)
        if not isinstance(query, str):
            return embedder, given_vector(query, mode, embedder.model_id if embedder else None)
        if embedder is None:
            if mode == "vector":
                raise no_vectors("There is no embedding model here")
            return None, None
        if self.gate and not self.gate(
            embedder, query, scopes=names, actor=principal.id, correlation_id=correlation_id
        ):
            if mode == "vector":
                raise asking.may_not_leave()
            return None, None
        return embedder, expand.vector_of(embedder.embed(asked_as, "query"))
