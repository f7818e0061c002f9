"""Generations of a scope's vectors: the live one, and one that is filled or kept beside it.

Belongs here: rows of kb.generation and what is counted about them, in the caller's transaction.
What does not: embedding, judging, deciding when to swap (`stages.reembed`). The scheme is that of
blue-green deployments, https://martinfowler.com/bliki/BlueGreenDeployment.html.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.rows import class_row

from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

Beside = Literal["shadow", "kept"]


@dataclass(frozen=True, slots=True)
class Generation:
    """What a scope is searched by.

    Attributes:
        scope: its name.
        scope_id: its id.
        closed_at: since when the scope takes no documents, or None.
        live: identity of the model that searches use, `name@fingerprint`.
        live_key: its key.
        live_since: aware.
        beside: identity of the model whose vectors lie beside, or None.
        beside_key: its key.
        beside_is: `shadow` while it is filled, `kept` after a swap.
        beside_since: aware.
        embedded: vectors computed for the shadow so far.
        embedded_s: seconds that took.
    """

    scope: str
    scope_id: int
    closed_at: datetime | None
    live: str
    live_key: int
    live_since: datetime
    beside: str | None
    beside_key: int | None
    beside_is: Beside | None
    beside_since: datetime | None
    embedded: int
    embedded_s: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a model's vectors of a scope are.

    Attributes:
        passages: of the scope, history included.
        done: those with a vector by the model.
        texts: vectors still to be computed; equal texts share one.
        tokens: of these texts.
        too_long: passages with more tokens than the model reads.
        missing_now: passages found now without a vector.
    """

    passages: int
    done: int
    texts: int
    tokens: int
    too_long: int
    missing_now: int

    @property
    def missing(self) -> int:
        """Passages without a vector by the model."""
        return self.passages - self.done


@dataclass(frozen=True, slots=True)
class Unfilled:
    """A document with passages that have no vector by a model."""

    document_key: int
    document_id: str


@dataclass(frozen=True, slots=True)
class FailedFill:
    """A document that was given up for a model."""

    document_id: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True)
class TextToFill:
    """An embedded text of a published version that has no vector.

    Attributes:
        embed_hash: SHA-256 hex of what is embedded.
        context: breadcrumb.
        text: the passage.
        content_hash: SHA-256 hex of the text.
        passage_id: of a passage with this text.
        token_count: as the scope's live model counted them when it was cut.
    """

    embed_hash: str
    context: str
    text: str
    content_hash: str
    passage_id: str
    token_count: int


@dataclass(frozen=True, slots=True)
class SampledPassage:
    """A passage found now; see the statement `sample_headings`."""

    passage_id: str
    heading_path: list[str]
    text: str
    context: str
    title: str | None
    document_id: str
    version: int
    content_hash: str


def of_scope(conn: Conn, scope: str) -> Generation | None:
    """The scope's generation, None while it has no vectors."""
    found = all_of(conn, scope)
    return found[0] if found else None


def all_of(conn: Conn, scope: str | None = None) -> list[Generation]:
    """Generations of all scopes that the connection may see, by name."""
    with conn.cursor(row_factory=class_row(Generation)) as cursor:
        return cursor.execute(sql("generations"), {"scope": scope}).fetchall()


def lock(conn: Conn, scope_id: int) -> None:
    """Wait for puts under way and hold new ones back until the transaction ends."""
    conn.execute(sql("lock_generation"), {"scope_id": scope_id})


def start(conn: Conn, scope_id: int, model_key: int) -> bool:
    """Begin to fill a model's vectors; False where another one lies beside, or it is live."""
    given = {"scope_id": scope_id, "model_key": model_key}
    return conn.execute(sql("start_generation"), given).fetchone() is not None


def turn(conn: Conn, scope_id: int, model_key: int, *, left_as: Beside) -> bool:
    """Make the model beside live in one update; the live one stays beside as `left_as`.

    Returns:
        False where the model does not lie beside, or as something else.
    """
    given = {"scope_id": scope_id, "model_key": model_key, "left_as": left_as}
    return conn.execute(sql("turn_generation"), given).fetchone() is not None


def leave(conn: Conn, scope_id: int) -> bool:
    """Let nothing lie beside any more; see `delete_others`."""
    return conn.execute(sql("leave_generation"), {"scope_id": scope_id}).fetchone() is not None


def delete_others(conn: Conn, scope_id: int, *, limit: int = 10_000) -> int:
    """Delete vectors that are of neither generation, at most `limit`; returns how many."""
    given = {"scope_id": scope_id, "limit": limit}
    conn.execute(sql("forget_other_work"), given)
    return conn.execute(sql("delete_other_vectors"), given).rowcount


def progress(conn: Conn, scope_id: int, model_key: int, *, max_tokens: int = 2**31 - 1) -> Progress:
    """How far a model's vectors of a scope are.

    Args:
        conn: inside a transaction.
        scope_id: the scope.
        model_key: the model; 0 for one that was never used.
        max_tokens: longest input of the model.
    """
    given = {"scope_id": scope_id, "model_key": model_key, "max_tokens": max_tokens}
    [row] = rows(conn, "generation_progress", given)
    return Progress(**row)


def unfilled(
    conn: Conn, scope_id: int, model_key: int, *, passed_over: Collection[int] = (), limit: int = 64
) -> list[Unfilled]:
    """Documents that lack vectors by the model and were not given up, those found now first."""
    given = {
        "scope_id": scope_id,
        "model_key": model_key,
        "passed_over": list(passed_over),
        "limit": limit,
    }
    with conn.cursor(row_factory=class_row(Unfilled)) as cursor:
        return cursor.execute(sql("unfilled_documents"), given).fetchall()


def versions_to_fill(conn: Conn, document_key: int, model_key: int) -> list[tuple[int, int]]:
    """Key and number of the document's versions that lack vectors, the newest first."""
    given = {"document_key": document_key, "model_key": model_key}
    return [tuple(row) for row in conn.execute(sql("unfilled_versions"), given).fetchall()]


def carry(conn: Conn, version_key: int, model_key: int) -> int:
    """Give a version's passages the vectors that the scope has of equal texts; how many."""
    given = {"version_key": version_key, "model_key": model_key}
    row = conn.execute(sql("carry_vectors"), given).fetchone()
    return int(row[0]) if row else 0


def attach(conn: Conn, version_key: int, model_key: int) -> None:
    """Move a published version's staged vectors beside its passages."""
    conn.execute(sql("attach_vectors"), {"version_key": version_key, "model_key": model_key})


def texts_to_fill(conn: Conn, version_key: int, model_key: int) -> list[TextToFill]:
    """Texts of a published version that have no vector by the model, in reading order."""
    given = {"version_key": version_key, "model_key": model_key}
    with conn.cursor(row_factory=class_row(TextToFill)) as cursor:
        return cursor.execute(sql("texts_to_fill"), given).fetchall()


def count_fill(conn: Conn, scope_id: int, model_key: int, vectors: int, seconds: float) -> None:
    """Add what a batch computed to the numbers of the generation that is filled."""
    given = {
        "scope_id": scope_id,
        "model_key": model_key,
        "vectors": vectors,
        "seconds": seconds,
    }
    conn.execute(sql("count_fill"), given)


def failed(conn: Conn, scope_id: int, model_key: int, *, limit: int = 1000) -> list[FailedFill]:
    """Documents given up for a model, at most `limit`."""
    given = {"scope_id": scope_id, "model_key": model_key, "limit": limit}
    with conn.cursor(row_factory=class_row(FailedFill)) as cursor:
        return cursor.execute(sql("failed_fills"), given).fetchall()


def fail(
    conn: Conn, scope_id: int, model_key: int, document_key: int, error: str, attempts: int
) -> None:
    """Count a failed try of a document; after `attempts` of them it is given up."""
    given = {
        "scope_id": scope_id,
        "model_key": model_key,
        "document_key": document_key,
        "error": error,
        "attempts": attempts,
    }
    conn.execute(sql("begin_fill_try"), given)
    conn.execute(sql("settle_embed_work"), given)


def settle(conn: Conn, model_key: int, document_key: int) -> None:
    """Forget a document's failed tries: its vectors are there."""
    given = {"document_key": document_key, "model_key": model_key, "held_too": True}
    conn.execute(sql("vectors_arrived"), given)


def retry(conn: Conn, scope_id: int, model_key: int) -> int:
    """Try given-up documents again from the start; returns how many."""
    given = {"scope_id": scope_id, "model_key": model_key}
    return conn.execute(sql("retry_fills"), given).rowcount


def has_index(conn: Conn, scope_id: int, model_key: int) -> bool:
    """Whether the scope owns a usable vector index for the model."""
    given = {"scope_id": scope_id, "model_key": model_key}
    row = conn.execute(sql("has_vector_index"), given).fetchone()
    return bool(row and row[0])


def to_backfill(conn: Conn, limit: int) -> list[tuple[str, str]]:
    """Scope and id of documents that lack vectors of a shadow or of their live model."""
    found = conn.execute(sql("backfill_documents"), {"limit": limit}).fetchall()
    return [(scope, document_id) for scope, document_id in found]


def sample(conn: Conn, scope_id: int, size: int) -> Sequence[SampledPassage]:
    """Passages found now, the same ones as long as the scope does not change."""
    with conn.cursor(row_factory=class_row(SampledPassage)) as cursor:
        given = {"scope_id": scope_id, "size": size}
        return cursor.execute(sql("sample_headings"), given).fetchall()
