"""Vectors without a model: words and letter trigrams, hashed.

Belongs here: an embedder for tests, demos and machines that may hold no model. What does not:
meaning; it finds shared words and word parts only. The method is feature hashing (Weinberger et
al. 2009) with signs; sums are exact, so every machine gives the same bytes.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kb_resources.embed.identity import Embedded, Kind, ModelIdentity, StopCallback, fingerprint
from kb_resources.embed.vectors import check_texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "hashing"
VERSION = 1
DIMENSIONS = 512
_WORD = re.compile(r"\w+")
_TRIGRAM_WEIGHT = 0.5
_MAX_TOKENS = 8192


class HashingEmbedder:
    """Implements `Embedder` and `TokenCounter`; a token is a word."""

    overhead = 0
    max_tokens = _MAX_TOKENS

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        """Choose the vector length; more dimensions, fewer collisions."""
        self._identity = ModelIdentity(
            name=NAME,
            fingerprint=fingerprint(version=VERSION, dimensions=dimensions),
            dimensions=dimensions,
            max_tokens=_MAX_TOKENS,
            query_prefix="",
            passage_prefix="",
        )

    @property
    def identity(self) -> ModelIdentity:
        """The method's identity; its version is part of the fingerprint."""
        return self._identity

    @property
    def model_id(self) -> str:
        """`identity.model_id`."""
        return self._identity.model_id

    def count(self, texts: Sequence[str]) -> list[int]:
        """Words of each text."""
        return [len(_words(text)) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Code-point span of each word in `text`."""
        return [found.span() for found in _WORD.finditer(text)]

    def embed(self, texts: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        """See `Embedder.embed`; both kinds get the same vector."""
        embedded = self.embed_detailed(texts, kind)
        assert embedded is not None  # noqa: S101 - only a stop callback gives None
        return embedded.vectors

    def embed_detailed(
        self,
        texts: Sequence[str],
        kind: Kind,  # noqa: ARG002 - the protocol's
        *,
        should_stop: StopCallback | None = None,
    ) -> Embedded | None:
        """See `Embedder.embed_detailed`; nothing is ever cut."""
        check_texts(texts)
        vectors = np.zeros((len(texts), self._identity.dimensions), np.float32)
        for at, text in enumerate(texts):
            if should_stop is not None and should_stop():
                return None
            vectors[at] = self._vector(text)
        return Embedded(vectors, sum(self.count(texts)), ())

    def _vector(self, text: str) -> NDArray[np.float64]:
        dimensions = self._identity.dimensions
        # A text of marks alone has no word: its characters stand in.
        features = Counter(_features(_words(text) or list(text.strip())))
        sums = [0.0] * dimensions
        for feature, times in sorted(features.items()):
            place, sign = _place(feature)
            weight = _TRIGRAM_WEIGHT if feature.startswith("3") else 1.0
            sums[place % dimensions] += sign * weight * math.sqrt(times)
        norm = math.sqrt(math.fsum(value * value for value in sums))
        if norm == 0.0:  # every feature met its opposite
            sums[_place(text)[0] % dimensions], norm = 1.0, 1.0
        return np.array(sums) / norm


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _features(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        yield f"w{word}"
        framed = f"<{word}>"
        yield from (f"3{framed[at : at + 3]}" for at in range(len(framed) - 2))


@lru_cache(maxsize=65_536)
def _place(feature: str) -> tuple[int, float]:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "little")
    return number >> 1, 1.0 if number & 1 else -1.0
