"""What goes into a knowledge store and comes out of it: plain values, no I/O.

Belongs here: the types of `contract.KnowledgeStore`. What does not: storing, judging (`checks`).
Limits follow better-supabase's knowledge module (requirement B-29).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kb_resources.errors import InputError
from kb_resources.model import Block, Chunk, PageSpan, Verdict, content_hash

Vector = NDArray[np.float32]
WorkState = Literal["ready", "pending", "processing", "failed"]

MAX_DIMENSIONS = 4000
MAX_CAUSE = 2000


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may carry; more is refused with the reason before anything is written.

    Attributes:
        chunks: of one document.
        vectors: of one `add_vectors`.
        rows: of one list or search.
    """

    chunks: int = 10_000
    vectors: int = 2048
    rows: int = 1000


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The embedding model a store's vectors are by.

    Attributes:
        model_id: identity, `name@fingerprint`.
        dimensions: of its vectors, 1 to 4,000.

    Raises:
        InputError: a blank identity, or no such number of dimensions.
    """

    model_id: str
    dimensions: int

    def __post_init__(self) -> None:
        if not self.model_id.strip():
            raise InputError("The embedding model has no name.", next_step="Name it.")
        whole = isinstance(self.dimensions, int) and not isinstance(self.dimensions, bool)
        if not whole or not 1 <= self.dimensions <= MAX_DIMENSIONS:
            raise InputError(
                f"{self.dimensions!r} is not a number of dimensions.",
                next_step=f"Use a whole number from 1 to {MAX_DIMENSIONS}.",
            )


@dataclass(frozen=True, slots=True)
class Edition:
    """A version of a document as it is to be published: one `put`.

    Attributes:
        document_id: stable within the scope.
        title: shown with every passage.
        body: canonical Markdown.
        chunks: slices of the body, in order.
        digest: SHA-256 hex of the source's bytes; known bytes are the version they were before.
        valid_from: aware instant from which it holds.
        audiences: names of which a reader must hold one; none: everyone in the scope.
        media_type: of the source.
        language: ISO 639-1 code, or `und`.
        origin: path or URL it comes from; empty: its id.
        verdict: the scan's answer; only `clean` can be published.
        rule_pack: what the scan was made with.
        vectors: embedded text's hash (`Chunk.embed_hash`) to its vector, `(dim,) float32`,
            L2-normalised. What is left out is carried over where the scope knows the text, and
            waits otherwise.
        metadata: flat facts of the source.
        blocks: the body's blocks; none: it counts as one paragraph.
        pages: the body's pages, where it has any.
    """

    document_id: str
    title: str
    body: str
    chunks: tuple[Chunk, ...]
    digest: str
    valid_from: datetime
    audiences: tuple[str, ...] = ()
    media_type: str = "text/markdown"
    language: str = "und"
    origin: str = ""
    verdict: Verdict = Verdict.CLEAN
    rule_pack: str = "caller"
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    pages: tuple[PageSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """What a `put` did.

    Attributes:
        version: number within the document.
        state: `new`, `replaced`, `reinstated` (an earlier version holds again), `rebuilt` (same
            version, other passages), `unchanged`.
        passages: of the version.
        waiting: passages without a vector; found by their words until they have one.
    """

    version: int
    state: str
    passages: int
    waiting: int


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document that search finds now.

    Attributes:
        document_id: stable within the scope.
        version: the one that holds now.
        digest: of its source bytes.
        title: of the version.
        media_type: of the source.
        language: of the version.
        audiences: sorted; none: everyone in the scope.
        valid_from: when the version began to hold.
        passages: how many it has.
    """

    document_id: str
    version: int
    digest: str
    title: str
    media_type: str
    language: str
    audiences: tuple[str, ...]
    valid_from: datetime
    passages: int


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a list; `next_cursor` is None on the last one."""

    items: tuple[StoredDocument, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PassageRecord:
    """A passage with its place in the document's headings.

    Attributes:
        passage_id: stable id.
        document_id: the document.
        version: number within the document.
        text: slice of the body.
        context: indexed with the text, never cited.
        doc_title: title of the version.
        section_titles: headings above, from the root down.
        node_path: ids of these sections, from the document's root to the passage's own.
        page: 1-based page or None.
        byte_start: in the body, UTF-8 bytes.
        byte_end: exclusive.
    """

    passage_id: str
    document_id: str
    version: int
    text: str
    context: str
    doc_title: str
    section_titles: tuple[str, ...]
    node_path: tuple[str, ...]
    page: int | None
    byte_start: int
    byte_end: int

    @property
    def depth(self) -> int:
        """How many headings stand above."""
        return len(self.section_titles)

    @property
    def node_id(self) -> str:
        """The section it stands directly in."""
        return self.node_path[-1]


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a search found.

    Attributes:
        passage: the record.
        score: what the list is ordered by, higher is better; means nothing across searches.
        text_score: BM25, or None where the words did not find it.
        vector_score: inner product of unit vectors, or None where the vector did not find it.
    """

    passage: PassageRecord
    score: float
    text_score: float | None
    vector_score: float | None


@dataclass(frozen=True, slots=True)
class Missing:
    """A text that waits for its vector: `embed_hash` and what is to be embedded."""

    embed_hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """Where a document's embedding stands.

    Attributes:
        document_id: the document.
        state: `ready`, `pending`, `processing` or `failed`.
        waiting: passages without a vector.
        attempts: how often it was tried and did not come to an end.
        error: why the last try failed, at most 2,000 characters.
    """

    document_id: str
    state: WorkState
    waiting: int
    attempts: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of what search finds.

    Attributes:
        event_id: stable over repeated deliveries.
        scope: scope name.
        document_id: the document.
        kind: `upsert` or `delete`.
        version: that is found now; None for `delete`.
    """

    event_id: str
    scope: str
    document_id: str
    kind: Literal["upsert", "delete"]
    version: int | None


def node_path(heading_path: Sequence[str]) -> tuple[str, ...]:
    """Ids of the sections from the document's root down to this heading path."""
    return tuple(section_id(heading_path[:depth]) for depth in range(len(heading_path) + 1))


def section_id(heading_path: Sequence[str]) -> str:
    """Id of a section by its headings: the part of `model.passage_id` that names it."""
    return content_hash("\x1f".join(heading_path))[:8]
