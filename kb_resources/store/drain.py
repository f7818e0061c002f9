"""Embedding what waits: one document, or until nothing is left.

Belongs here: batches, tries, stopping, over any `contract.KnowledgeStore`. What does not: the
model. The rules are those of better-supabase's jobs (requirements B-12, B-13): every document is
tried a few times, then failed with its cause, and one bad document stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb_resources.errors import ConflictError, InputError, KbError, UnavailableError
from kb_resources.store.checks import cause
from kb_resources.store.contract import KnowledgeStore
from kb_resources.store.records import Vector

BATCH = 64
MAX_BATCH = 2048
ATTEMPTS = 3

Embed = Callable[[Sequence[str]], Sequence[Vector] | NDArray[np.float32]]
"""Texts to as many vectors, `(n, dim) float32`, L2-normalised; raises where it cannot."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did.

    Attributes:
        ready: documents whose last vector came.
        failed: documents given up, id to cause.
    """

    ready: tuple[str, ...]
    failed: dict[str, str]


def process(
    store: KnowledgeStore,
    document_id: str,
    embed: Embed | None,
    *,
    scope: str | None = None,
    batch: int = BATCH,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Embed one document's texts that wait, batch by batch; each batch is kept.

    Args:
        store: holds the document.
        document_id: the document.
        embed: the model, or None where there is none.
        scope: of the document.
        batch: texts at once, 1 to 2,048.
        should_stop: asked before each batch.

    Returns:
        Passages that still wait: 0 when it is ready. More than 0 when it was stopped, or when a
        batch brought nothing nearer because the texts had meanwhile become others.

    Raises:
        UnavailableError: there is no model.
        InputError: the batch size, or vectors that are none; those of the batch are not written.
        NotFound: no such document.
    """
    check_batch(batch)
    if embed is None:
        raise UnavailableError(
            "There is no embedding model to work with.",
            next_step="Set KB_MODEL, or prepare one with kb models prepare.",
            code="no_embedder",
        )
    waiting = store.add_vectors(document_id, {}, scope=scope)
    while waiting and not should_stop():
        missing = store.missing(document_id, scope=scope)[:batch]
        made = embed([item.text for item in missing])
        if len(made) != len(missing):
            raise InputError(
                f"The embedder gave {len(made)} vectors for {len(missing)} texts.",
                next_step="Nothing was written; check the embedding model or endpoint.",
                code="embedding_invalid",
            )
        found = {item.embed_hash: vector for item, vector in zip(missing, made, strict=True)}
        left = store.add_vectors(document_id, found, scope=scope)
        if left >= waiting:
            return left
        waiting = left
    return waiting


def drain(
    store: KnowledgeStore,
    embed: Embed | None,
    *,
    holder: str,
    scope: str | None = None,
    attempts: int = ATTEMPTS,
    batch: int = BATCH,
    should_stop: Callable[[], bool] = lambda: False,
) -> Drained:
    """Embed every document of a scope that waits, until none does.

    A document that fails is tried again after the others, `attempts` times in all, and is then
    failed with its cause. Stopping leaves what is done and marks nothing as failed.

    Args:
        store: holds the documents.
        embed: the model, or None where there is none.
        holder: names this worker; leases are under it.
        scope: whose documents.
        attempts: tries of each document.
        batch: texts at once.
        should_stop: asked between batches and documents.

    Raises:
        UnavailableError: there is no model, or the database is away.
    """
    check_batch(batch)
    ready: list[str] = []
    failed: dict[str, str] = {}
    while not should_stop():
        claimed = store.claim(holder=holder, scope=scope)
        if claimed is None:
            break
        name = claimed.document_id
        error = ""
        try:
            process(store, name, embed, scope=scope, batch=batch, should_stop=should_stop)
        except UnavailableError:
            store.settle(name, holder=holder, scope=scope)
            raise
        except Exception as raised:  # noqa: BLE001 - one document's error stops no other
            error = raised.message if isinstance(raised, KbError) else cause(raised)
        try:
            ended = store.settle(name, holder=holder, error=error, attempts=attempts, scope=scope)
        except ConflictError:
            continue  # published anew meanwhile: it waits again, for whoever claims it
        if ended.state == "ready":
            ready.append(name)
        elif ended.state == "failed":
            failed[name] = ended.error
    return Drained(tuple(ready), failed)


def check_batch(batch: int) -> None:
    """Raise InputError unless 1 to 2,048."""
    if not 1 <= batch <= MAX_BATCH:
        raise InputError(
            f"The batch size is {batch}.",
            next_step=f"Use 1 to {MAX_BATCH:,}.",
            code="limit_invalid",
        )
