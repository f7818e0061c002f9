"""The best candidates of a search in the order of a cross-encoder, where there is one in time.

Belongs here: when it is loaded, how long a search waits for it, what is said of it. What does not:
the model (`embed.cross_encoder`), and the search that gives the candidates. A search never loads
the model and never fails with it: it then keeps its own order and says `reranked: false`. The
sigmoid of a logit is comparable between questions, unlike a fused rank (Nogueira and Cho 2019 train
with it).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from kb_resources.errors import InputError
from kb_resources.model.chunk import embedding_input
from kb_resources.retrieve.hit import Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 30
"""Candidates that are read: beyond them first ranks rarely come from, and each costs a pass."""
TIME_LIMIT_S = 1.0
_PLACES = 4
_log = logging.getLogger(__name__)


class PairScorer(Protocol):
    """A cross-encoder; see `embed.cross_encoder.CrossEncoder`."""

    name: str

    def scores(
        self, question: str, passages: Sequence[str], *, should_stop: Callable[[], bool]
    ) -> NDArray[np.float32] | None:
        """`(n,)` float32 logits, or None when it was stopped."""
        ...


class Reranker:
    """Holds a cross-encoder and lends it to searches, one at a time.

    Args:
        load: gives the model; called by `warm` alone, in a thread of its own.
        time_limit_s: how long a search waits for its scores.
        depth: candidates of a search that it reads, 1 to 100.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        load: Callable[[], PairScorer],
        *,
        time_limit_s: float = TIME_LIMIT_S,
        depth: int = DEPTH,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._time_limit_s = time_limit_s
        self._depth = max(1, min(depth, 100))
        self._clock = clock
        self._guard = threading.Lock()
        self._warming: threading.Thread | None = None
        self._model: PairScorer | None = None
        self._worker = ThreadPoolExecutor(1, "kb-rerank")

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return self._model is not None

    @property
    def depth(self) -> int:
        """Candidates of a search that it reads."""
        return self._depth

    def warm(self, *, wait: bool = False) -> None:
        """Load the model in the background, once; a model that can't be loaded is logged.

        Args:
            wait: return when it is loaded, or can't be.
        """
        with self._guard:
            if self._warming is None:
                self._warming = threading.Thread(target=self._warm, name="kb-rerank-warm")
                self._warming.start()
        if wait:
            self._warming.join()

    def _warm(self) -> None:
        try:
            model = self._load()
            model.scores("warm", ["up"], should_stop=lambda: False)
            self._model = model
        except Exception as error:  # noqa: BLE001 - searches go on without it
            _log.error("the reranker cannot be used: %s", error)

    def relevances(self, question: str, passages: Sequence[str]) -> list[float] | None:
        """Sigmoid of each passage's logit; None where the model is not there, or not in time."""
        model = self._model
        if model is None or not passages:
            return None
        late = self._clock() + self._time_limit_s
        asked = self._worker.submit(
            model.scores, question, passages, should_stop=lambda: self._clock() > late
        )
        try:
            logits = asked.result(self._time_limit_s)
        except TooLate:
            asked.cancel()
            return None
        except Exception as error:  # noqa: BLE001 - the search has an order of its own
            _log.error("the reranker failed: %s", type(error).__name__)
            return None
        if logits is None:
            return None
        return [round(_sigmoid(value), _PLACES) for value in logits.tolist()]

    def order(
        self, question: str, rows: Sequence[dict[str, Any]], k: int
    ) -> tuple[list[dict[str, Any]], bool]:
        """The best `k` rows of a search and whether the model ordered them.

        Args:
            question: as it was asked.
            rows: rows of the search, best first; the first `depth` are read.
            k: rows wanted.

        Returns:
            Rows with their `relevance` in its order; or the first `k` as they were, and False.
        """
        read, rest = list(rows[: self._depth]), list(rows[self._depth :])
        found = self.relevances(
            question, [embedding_input(row["context"], row["text"]) for row in read]
        )
        if found is None:
            return list(rows[:k]), False
        order = sorted(range(len(read)), key=lambda at: (-found[at], at))
        ordered = [{**read[at], "relevance": found[at]} for at in order]
        return [*ordered, *rest][:k], True


def order(
    reranker: Reranker | None, question: str, rows: list[dict[str, Any]], k: int
) -> tuple[list[dict[str, Any]], bool]:
    """`Reranker.order`, or the rows as they are where there is no reranker."""
    return (rows, False) if reranker is None else reranker.order(question, rows, k)


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


def check_least(least: float | None) -> float | None:
    """A bound on relevance, or InputError."""
    if least is not None and not 0 <= least <= 1:
        raise InputError(f"min_score is {least:g}.", next_step="Use 0 to 1.")
    return least


def reaches(hit: Hit, least: float | None) -> bool:
    """Whether a hit is relevant enough; one without a relevance is."""
    return least is None or hit.relevance is None or hit.relevance >= least


def at_least(hits: Sequence[Hit], least: float | None) -> tuple[Hit, ...]:
    """Hits that reach it, ranked anew."""
    if least is None:
        return tuple(hits)
    kept = [hit for hit in hits if reaches(hit, least)]
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(kept, 1))
