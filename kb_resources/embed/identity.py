"""What an embedder is, and what makes two embedders the same one.

Belongs here: the protocols and value types every embedder shares. What does not: running a model
(`onnx_embedder`), asking an endpoint (`remote`), finding files (`cache`).
Query and passage prefixes are part of the identity: E5 was trained with them (Wang et al. 2024,
"Multilingual E5 Text Embeddings").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb_resources.embed.sparse import SparseVector

    Vectors = NDArray[np.float32]

Kind = Literal["query", "passage"]
StopCallback = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What decides whether two vectors may be compared.

    Attributes:
        name: the registry's name of the model.
        fingerprint: 16 hex digits over weights, form, prefixes, dimensions and token limit.
        dimensions: length of a vector.
        max_tokens: longest input in tokens, prefix and special tokens included.
        query_prefix: put before every query.
        passage_prefix: put before every passage.
    """

    name: str
    fingerprint: str
    dimensions: int
    max_tokens: int
    query_prefix: str
    passage_prefix: str

    @property
    def model_id(self) -> str:
        """`name@fingerprint`: equal exactly when vectors may be mixed."""
        return f"{self.name}@{self.fingerprint}"

    def prefix(self, kind: Kind) -> str:
        """The prefix of one kind of text."""
        return self.query_prefix if kind == "query" else self.passage_prefix


def fingerprint(**facts: object) -> str:
    """16 hex digits over everything that decides a model's vectors.

    Args:
        **facts: JSON-serialisable values; their names take part, their order does not.
    """
    canonical = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a list of texts and what it took to make them.

    Attributes:
        vectors: `(n, dimensions)` float32, L2-normalised, in the order of the texts.
        tokens: tokens the model read, prefixes and special tokens included.
        truncated: positions of texts that were cut to the model's limit.
        sparse: one sparse vector for each text, where the model gives them; else empty.
    """

    vectors: Vectors
    tokens: int
    truncated: tuple[int, ...]
    sparse: tuple[SparseVector, ...] = ()


class Embedder(Protocol):
    """Turns texts into unit vectors. Implementations are safe to call from several threads."""

    @property
    def identity(self) -> ModelIdentity:
        """The model's identity."""
        ...

    @property
    def model_id(self) -> str:
        """`identity.model_id`, the string stored beside every vector."""
        ...

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of texts, `(n, dimensions)` float32, L2-normalised, in order.

        Raises:
            InputError: a text is blank.
            IntegrityError: the model gave something that is not n finite unit vectors.
            UnavailableError: the model or its endpoint is away.
        """
        ...

    def embed_detailed(
        self, texts: Sequence[str], kind: Kind, *, should_stop: StopCallback | None = None
    ) -> Embedded | None:
        """As `embed`, with token and truncation counts.

        Args:
            texts: none of them blank.
            kind: which prefix they get.
            should_stop: asked between batches; True ends the call.

        Returns:
            None when `should_stop` ended the call; nothing of it may be kept.
        """
        ...


class TokenCounter(Protocol):
    """Counts and places tokens as the embedding model sees them, without loading the model."""

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens, `overhead` included."""
        ...

    @property
    def overhead(self) -> int:
        """Tokens that the passage prefix and the special tokens add to every text."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without prefix and special tokens."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open code-point span of each token in `text`, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive results of a stream.

    Attributes:
        start: position in the stream of the first text.
        embedded: their vectors and counts; `truncated` counts from the block's start.
    """

    start: int
    embedded: Embedded


def embed_stream(
    embedder: Embedder,
    texts: Iterable[str],
    kind: Kind,
    *,
    window_texts: int = 512,
    window_chars: int = 256_000,
    should_stop: StopCallback | None = None,
) -> Iterator[Block]:
    """Embed any number of texts with bounded memory.

    Reads one window of texts at a time and yields its vectors before it reads the next; a larger
    window fills batches of equal length better, a smaller one loses less when stopped.

    Args:
        embedder: what embeds.
        texts: read lazily, once.
        kind: which prefix they get.
        window_texts: most texts held at once.
        window_chars: most code points held at once, but for one text that is longer by itself.
        should_stop: asked between batches; True ends the stream, the window in work is dropped.

    Yields:
        One block for each window, in order.
    """
    start, chars = 0, 0
    window: list[str] = []
    for text in texts:
        if window and (len(window) >= window_texts or chars + len(text) > window_chars):
            embedded = embedder.embed_detailed(window, kind, should_stop=should_stop)
            if embedded is None:
                return
            yield Block(start, embedded)
            start, chars, window = start + len(window), 0, []
        window.append(text)
        chars += len(text)
    if window:
        embedded = embedder.embed_detailed(window, kind, should_stop=should_stop)
        if embedded is not None:
            yield Block(start, embedded)
