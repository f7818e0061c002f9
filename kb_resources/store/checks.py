"""What every store refuses before it writes anything, and the errors it says it with.

Belongs here: checks that hold for each implementation of `contract.KnowledgeStore`. What does not:
what only a database can know (`migrations`). Codes are stable, see docs/reference/errors.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import numpy as np

from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.model import Verdict, content_hash, validate_audience, validate_document_id
from kb_resources.model.chunk import embedding_input
from kb_resources.store.codec import storable
from kb_resources.store.records import MAX_CAUSE, Edition, Limits, Vector, VectorSpace
from kb_resources.supersede import check_instant

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CONSUMER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_TOLERANCE = 1e-3
"""How far from 1 the length of a vector may be."""
MAX_K = 100


def check_edition(edition: Edition, space: VectorSpace, limits: Limits) -> None:
    """Refuse what no store may take, before anything is written.

    Raises:
        InputError: an id, digest, time or audience is malformed, or a vector is none.
        PolicyError: the verdict is not clean, a limit is passed, or a chunk is no slice of the
            body of this document.
    """
    validate_document_id(edition.document_id)
    for name in edition.audiences:
        validate_audience(name)
    if not _DIGEST.fullmatch(edition.digest):
        raise InputError(
            "The digest is no SHA-256.", next_step="Give 64 lowercase hex digits of the bytes."
        )
    check_instant(edition.valid_from)
    if edition.verdict is not Verdict.CLEAN:
        raise PolicyError(
            f"The verdict of {edition.document_id!r} is {edition.verdict.value}.",
            next_step="Review its findings, then release or reject it.",
            code="gate",
        )
    if len(edition.chunks) > limits.chunks:
        raise PolicyError(
            f"{edition.document_id!r} has {len(edition.chunks):,} chunks; {limits.chunks:,} are "
            "allowed.",
            next_step="Divide the document, or raise the limit.",
            code="too_many_chunks",
        )
    _check_chunks(edition)
    check_vectors(edition.vectors, space)


def _check_chunks(edition: Edition) -> None:
    data = edition.body.encode()
    end = 0
    seen: set[str] = set()
    for place, chunk in enumerate(edition.chunks):
        problem = ""
        if chunk.ordinal != place:
            problem = f"is number {chunk.ordinal}"
        elif not chunk.passage_id.startswith(f"{edition.document_id}."):
            problem = f"is of another document ({chunk.passage_id})"
        elif chunk.passage_id in seen:
            problem = f"repeats the id {chunk.passage_id}"
        elif data[chunk.byte_start : chunk.byte_end] != chunk.text.encode() or not chunk.text:
            problem = "is no slice of the body"
        elif chunk.byte_start < end:
            problem = "overlaps the one before"
        elif chunk.content_hash != content_hash(chunk.text):
            problem = "has another content hash than its text"
        elif chunk.embed_hash != content_hash(embedding_input(chunk.context, chunk.text)):
            problem = "has another embed hash than its text and context"
        if problem:
            raise PolicyError(
                f"Chunk {place} of {edition.document_id!r} {problem}.",
                next_step="Chunk the document again.",
                code="chunk_invalid",
            )
        seen.add(chunk.passage_id)
        end = chunk.byte_end
    if not edition.chunks:
        raise PolicyError(
            f"{edition.document_id!r} has no chunk.",
            next_step="An empty document is not published; remove it instead.",
            code="chunk_invalid",
        )


def check_vectors(vectors: Mapping[str, Vector], space: VectorSpace) -> None:
    """Refuse vectors that are not finite, of unit length and of the store's dimensions.

    Raises:
        InputError: with code `embedding_invalid`; nothing was written.
    """
    sound = _all_sound(vectors, space)
    for embed_hash, vector in vectors.items():
        if not _DIGEST.fullmatch(embed_hash):
            raise InputError(
                f"{embed_hash!r} is not the hash of an embedded text.",
                next_step="Give vectors under Chunk.embed_hash.",
                code="embedding_invalid",
            )
        if not sound:
            check_vector(vector, space)


def _all_sound(vectors: Mapping[str, Vector], space: VectorSpace) -> bool:
    """Whether `check_vector` lets all of them pass, asked of all at once; False: not certain."""
    if any(np.shape(vector) != (space.dimensions,) for vector in vectors.values()):
        return False
    lengths = np.linalg.norm(np.array(list(vectors.values())), axis=-1)
    return bool((np.abs(lengths - 1) <= _TOLERANCE).all())


def check_vector(vector: Vector, space: VectorSpace) -> None:
    """Refuse one vector; see `check_vectors`."""
    given = np.asarray(vector)
    problem = ""
    if given.ndim != 1 or given.shape[0] != space.dimensions:
        problem = f"has shape {given.shape}, not ({space.dimensions},)"
    elif not np.isfinite(given).all():
        problem = "holds numbers that are not finite"
    elif abs(float(np.linalg.norm(given)) - 1) > _TOLERANCE:
        problem = "is not of unit length"
    if problem:
        raise InputError(
            f"A vector {problem}.",
            next_step="Nothing was written; check the embedding model or endpoint.",
            code="embedding_invalid",
        )


def cause(error: Exception | str) -> str:
    """Why something failed, on record: one to 2,000 characters."""
    text = str(error).strip() or (type(error).__name__ if isinstance(error, Exception) else "")
    return text[:MAX_CAUSE] or "unknown"


def check_storable(edition: Edition) -> None:
    """Refuse texts that Postgres cannot hold; hashes and spans would not survive a replacement.

    Raises:
        InputError: with code `unstorable`.
    """
    texts = {edition.body, edition.title, edition.origin}
    texts.update(text for chunk in edition.chunks for text in (chunk.context, *chunk.heading_path))
    if any(storable(text) != text for text in texts):
        raise InputError(
            f"{edition.document_id!r} holds U+0000 or lone surrogates.",
            next_step="Replace them before the text is chunked; the parsers do.",
            code="unstorable",
        )


def check_rows(limit: int, cursor: str | None, limits: Limits) -> int | None:
    """The number a cursor stands for; InputError for a bad cursor or limit."""
    if not 1 <= limit <= limits.rows:
        raise InputError(
            f"The limit is {limit}.", next_step=f"Use 1 to {limits.rows:,}.", code="limit_invalid"
        )
    if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InputError(
            "The cursor is not one of ours.",
            next_step="Begin again without a cursor.",
            code="cursor_invalid",
        )
    return None if cursor is None else int(cursor)


def check_search(k: int, as_of: datetime | None, vector: Vector | None, space: VectorSpace) -> None:
    """Refuse a search that cannot be answered, with InputError."""
    if not 1 <= k <= MAX_K:
        raise InputError(f"k is {k}.", next_step=f"Use 1 to {MAX_K}.", code="limit_invalid")
    if as_of is not None:
        check_instant(as_of)
    if vector is not None:
        check_vector(vector, space)


def check_vectors_count(count: int, limits: Limits) -> None:
    """Refuse more vectors than one call may bring, with InputError."""
    if count > limits.vectors:
        raise InputError(
            f"{count:,} vectors came in one call; {limits.vectors:,} are allowed.",
            next_step="Send them in smaller batches.",
            code="too_many_vectors",
        )


def check_consumer(name: str) -> str:
    """The consumer's name, or InputError."""
    if not _CONSUMER.fullmatch(name):
        raise InputError(
            f"{name!r} is not a consumer's name.",
            next_step="Use 1 to 63 of a-z, 0-9, _, . and -, starting with a letter or digit.",
        )
    return name


def confirmed(confirm: str, scope: str) -> None:
    """Raise PolicyError unless `confirm` repeats the scope's name."""
    if confirm != scope:
        raise PolicyError(
            f"Removing everything from {scope!r} was not confirmed.",
            next_step="Repeat the scope's name as confirmation.",
            code="not_confirmed",
        )


def no_document(document_id: str, scope: str) -> NotFound:
    """The error for a document that is not there, or not any more."""
    return NotFound(
        f"There is no document {document_id!r} in {scope!r}.",
        next_step="Look with kb documents list.",
    )


def no_consumer(name: str) -> NotFound:
    """The error for a consumer that never subscribed."""
    return NotFound(f"Nobody subscribed as {name!r}.", next_step="Subscribe first.")


def not_held(document_id: str, holder: str) -> ConflictError:
    """The error for work that is not, or no longer, the caller's."""
    return ConflictError(
        f"{holder!r} does not hold the work on {document_id!r}.",
        next_step="Claim work again; it may have changed hands or been done.",
        code="not_held",
    )


def lost(holder: str) -> str:
    """The cause on record for work whose worker did not come back."""
    return f"The worker {holder} stopped before it was done."
