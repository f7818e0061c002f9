"""Embeds texts with an ONNX model on this machine's CPUs.

Belongs here: batches, threads, order. What does not: files (`cache`), the graph (`session`).
Two threads that call one session with one thread each beat one call with two, because small
operators split badly (onnxruntime, "Thread management").
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from kb_resources.embed.batching import TOKEN_BUDGET, plan_batches
from kb_resources.embed.cpus import available_cpus
from kb_resources.embed.identity import Embedded, Kind, ModelIdentity, StopCallback
from kb_resources.embed.priority import QueryFirst
from kb_resources.embed.session import OnnxSession
from kb_resources.embed.tokens import ModelTokenizer
from kb_resources.embed.vectors import check_texts, check_vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kb_resources.embed.sparse import SparseVector


class OnnxEmbedder:
    """Implements `Embedder`. Threads live as long as one call, so a fork in between is safe."""

    def __init__(
        self,
        identity: ModelIdentity,
        session: OnnxSession,
        tokenizer: ModelTokenizer,
        *,
        threads: int = 0,
        token_budget: int = TOKEN_BUDGET,
        sparse_dimensions: int = 0,
    ) -> None:
        """Bind a loaded session and tokenizer.

        Args:
            identity: the model's identity.
            session: the loaded graph.
            tokenizer: the model's tokenizer.
            threads: caller threads for bulk work; 0 takes the CPU quota.
            token_budget: most tokens in a batch.
            sparse_dimensions: size of the vocabulary, where the session gives token weights.
        """
        self._identity = identity
        self._session = session
        self._tokenizer = tokenizer
        self._threads = threads or available_cpus()
        self._budget = token_budget
        self._sparse_dimensions = sparse_dimensions
        self._order = QueryFirst()

    @property
    def identity(self) -> ModelIdentity:
        """The model's identity."""
        return self._identity

    @property
    def model_id(self) -> str:
        """`identity.model_id`."""
        return self._identity.model_id

    @property
    def tokenizer(self) -> ModelTokenizer:
        """The tokenizer in use, a `TokenCounter`."""
        return self._tokenizer

    @property
    def sparse_dimensions(self) -> int:
        """Size of the vocabulary of its sparse vectors; 0 where it gives none."""
        return self._sparse_dimensions

    def embed(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        embedded = self.embed_detailed(texts, kind)
        assert embedded is not None  # noqa: S101 - only a stop callback gives None
        return embedded.vectors

    def embed_detailed(
        self, texts: Sequence[str], kind: Kind, *, should_stop: StopCallback | None = None
    ) -> Embedded | None:
        """See `Embedder.embed_detailed`."""
        check_texts(texts)
        with self._order.query() if kind == "query" else nullcontext():
            encoded = self._tokenizer.encode(texts, kind)
            vectors = np.empty((len(texts), self._identity.dimensions), np.float32)
            sparse: dict[int, SparseVector] = {}
            whole = self._run(encoded.ids, kind, should_stop, vectors, sparse)
        if not whole:
            return None
        return Embedded(
            vectors,
            tokens=sum(map(len, encoded.ids)),
            truncated=encoded.truncated,
            sparse=tuple(sparse[at] for at in range(len(sparse))),
        )

    def _run(
        self,
        ids: list[list[int]],
        kind: Kind,
        should_stop: StopCallback | None,
        vectors: NDArray[np.float32],
        sparse: dict[int, SparseVector],
    ) -> bool:
        """Fill `vectors` and `sparse`; False when it was stopped."""
        batches = plan_batches([len(found) for found in ids], self._budget)
        stopped = threading.Event()

        def run(batch: list[int]) -> None:
            if stopped.is_set() or (should_stop is not None and should_stop()):
                stopped.set()
                return
            if kind == "passage":
                self._order.before_bulk_batch()
            try:
                block = np.array([ids[at] for at in batch], np.int64)
                found = self._session.run(block)
                vectors[batch] = check_vectors(
                    found.vectors,
                    count=len(batch),
                    dimensions=vectors.shape[1],
                    source=self._identity.name,
                )
                if self._sparse_dimensions and found.weights is not None:
                    sparse.update(zip(batch, self._sparse(block, found.weights), strict=True))
            except BaseException:
                stopped.set()  # the other threads need not finish what nobody will keep
                raise

        workers = min(self._threads, len(batches))
        if workers <= 1:
            for batch in batches:
                run(batch)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(workers, "kb-embed") as pool:
                for _ in pool.map(run, batches):
                    pass
        return not stopped.is_set()

    def _sparse(self, block: NDArray[np.int64], weights: NDArray[np.float32]) -> list[SparseVector]:
        from kb_resources.embed.sparse import sparse_vector

        ignored = self._tokenizer.special_ids
        return [
            sparse_vector(row, given, dimensions=self._sparse_dimensions, ignored=ignored)
            for row, given in zip(block, weights, strict=True)
        ]
