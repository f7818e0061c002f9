"""Embeds texts at an endpoint, and believes nothing it answers.

Belongs here: batches of requests, canaries, checks. What does not: HTTP (`transport`), the JSON
(`dialect`). Every request carries one canary beside its texts, so a model swapped between two
requests is noticed before a vector of the new one is returned.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kb_resources.embed.identity import Embedded, Kind, ModelIdentity, StopCallback
from kb_resources.embed.remote.canary import CANARY_TEXTS, CanaryRecord
from kb_resources.embed.remote.dialect import Endpoint
from kb_resources.embed.remote.transport import HttpTransport
from kb_resources.embed.vectors import check_texts, check_vectors, to_unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_COSINE = 0.999
_BYTES_PER_NUMBER = 40
_BYTES_BESIDE = 65_536


class RemoteEmbedder:
    """Implements `Embedder`."""

    def __init__(
        self,
        identity: ModelIdentity,
        endpoint: Endpoint,
        record: CanaryRecord,
        transport: HttpTransport,
        *,
        batch_texts: int = 32,
        batch_chars: int = 64_000,
        min_cosine: float = MIN_COSINE,
    ) -> None:
        """Bind to an endpoint; call `check` before the first use.

        Args:
            identity: the model's identity.
            endpoint: where it is served.
            record: the canaries' vectors when it was taken into use.
            transport: what sends.
            batch_texts: most texts in a request.
            batch_chars: most code points in a request, but for one longer text.
            min_cosine: lowest cosine between a canary and its record.
        """
        self._identity = identity
        self._endpoint = endpoint
        self._record = record
        self._transport = transport
        self._batch_texts = batch_texts
        self._batch_chars = batch_chars
        self._min_cosine = min_cosine
        self._next_canary = itertools.cycle(range(len(CANARY_TEXTS)))

    @property
    def identity(self) -> ModelIdentity:
        """The model's identity."""
        return self._identity

    @property
    def model_id(self) -> str:
        """`identity.model_id`."""
        return self._identity.model_id

    @property
    def address(self) -> str:
        """Where texts are sent."""
        return self._endpoint.address

    def check(self) -> None:
        """Compare all canaries with their record.

        Raises:
            IntegrityError: another model answers.
            UnavailableError: none does.
        """
        now = probe_endpoint(self._endpoint, self._transport, self._identity)
        self._compare(now.vectors, range(len(CANARY_TEXTS)))

    def _compare(self, vectors: NDArray[np.float32], places: Sequence[int]) -> None:
        self._record.check(
            vectors, places, source=self._endpoint.address, min_cosine=self._min_cosine
        )

    def embed(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """See `Embedder.embed`."""
        embedded = self.embed_detailed(texts, kind)
        assert embedded is not None  # noqa: S101 - only a stop callback gives None
        return embedded.vectors

    def embed_detailed(
        self, texts: Sequence[str], kind: Kind, *, should_stop: StopCallback | None = None
    ) -> Embedded | None:
        """See `Embedder.embed_detailed`; an endpoint that cuts texts does not say so."""
        check_texts(texts)
        prefix, dimensions = self._identity.prefix(kind), self._identity.dimensions
        vectors, tokens = np.empty((len(texts), dimensions), np.float32), 0
        for batch in self._batches(texts):
            if should_stop is not None and should_stop():
                return None
            canary = next(self._next_canary)
            asked = [prefix + texts[at] for at in batch]
            asked.append(self._identity.passage_prefix + CANARY_TEXTS[canary])
            found, counted = ask(self._endpoint, self._transport, asked, dimensions)
            self._compare(found[-1:], [canary])
            vectors[batch.start : batch.stop] = found[:-1]
            tokens += counted
        return Embedded(vectors, tokens, ())

    def _batches(self, texts: Sequence[str]) -> Iterator[range]:
        start, chars = 0, 0
        for at, text in enumerate(texts):
            full = at - start >= self._batch_texts or chars + len(text) > self._batch_chars
            if at > start and full:
                yield range(start, at)
                start, chars = at, 0
            chars += len(text)
        if start < len(texts):
            yield range(start, len(texts))


def probe_endpoint(
    endpoint: Endpoint, transport: HttpTransport, identity: ModelIdentity
) -> CanaryRecord:
    """Record the canaries of the model behind an endpoint, embedded as passages."""
    texts = [identity.passage_prefix + text for text in CANARY_TEXTS]
    return CanaryRecord(ask(endpoint, transport, texts, identity.dimensions)[0])


def ask(
    endpoint: Endpoint, transport: HttpTransport, texts: Sequence[str], dimensions: int
) -> tuple[NDArray[np.float32], int]:
    """One request: `(n, dimensions)` float32 unit vectors, checked, and the tokens counted."""
    reply = transport.post(
        endpoint.address,
        endpoint.payload(texts),
        max_bytes=len(texts) * dimensions * _BYTES_PER_NUMBER + _BYTES_BESIDE,
    )
    raw, tokens = endpoint.parse(reply, len(texts))
    unit = to_unit(raw, source=endpoint.address)
    return (
        check_vectors(unit, count=len(texts), dimensions=dimensions, source=endpoint.address),
        tokens,
    )
