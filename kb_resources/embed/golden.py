"""Known texts with known vectors: does this build of a model calculate what it should?

Belongs here: comparing with vectors stored in the package. What does not: digests of files
(`manifest`). The vectors were calculated in float64 from the same weights by
`convert.reference`, which shares no code with the graph, so a mistake in graph, tokenizer or
runtime shows here. Golden-master testing is described by Feathers (2004), chapter 13.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kb_resources.embed.registry import package_data
from kb_resources.errors import IntegrityError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb_resources.embed.identity import Embedder, Kind

MIN_COSINE = 0.999


@dataclass(frozen=True, slots=True)
class Golden:
    """One text and its vector.

    Attributes:
        kind: which prefix the text gets.
        text: the text.
        vector: `(dimensions,)` float32, L2-normalised.
    """

    kind: Kind
    text: str
    vector: NDArray[np.float32]


@cache
def golden_set(name: str) -> tuple[Golden, ...]:
    """The stored texts and vectors of a model; empty where none are."""
    import numpy as np

    stored = package_data("data/golden.json")
    found = []
    for entry in json.loads(stored).get(name, ()):
        half = np.frombuffer(base64.b64decode(entry["vector"]), "<f2").astype(np.float32)
        found.append(Golden(entry["kind"], entry["text"], half / np.linalg.norm(half)))
    return tuple(found)


def golden_cosines(embedder: Embedder, *, limit: int | None = None) -> list[float]:
    """Cosine between each golden vector and the embedder's own.

    Args:
        embedder: what to test; its registry name picks the texts.
        limit: use the first so many texts only.
    """
    chosen = golden_set(embedder.identity.name)[:limit]
    return [float(embedder.embed([entry.text], entry.kind)[0] @ entry.vector) for entry in chosen]


def check_golden(embedder: Embedder, *, limit: int | None = None) -> float:
    """The lowest golden cosine, 1.0 where no golden vectors are known.

    Raises:
        IntegrityError: one is below 0.999.
    """
    lowest = min(golden_cosines(embedder, limit=limit), default=1.0)
    if not lowest >= MIN_COSINE:
        raise IntegrityError(
            f"The model {embedder.model_id} does not calculate its golden vectors "
            f"(lowest cosine {lowest:.4f}, needed {MIN_COSINE}).",
            next_step="Run `kb models prepare --force`; if it stays, report CPU and versions.",
        )
    return lowest
