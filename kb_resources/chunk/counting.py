"""Counting tokens: what a counter offers, the estimate for when there is none, and its warning.

Belongs here: the protocol and checks on what foreign counters return. A tokenizer that fills it
comes from the embedding model; this package never loads one.
Four characters a token is OpenAI's rule of thumb for English,
https://help.openai.com/en/articles/4936856.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from kb_resources.errors import IntegrityError

ESTIMATE_WARNING: Final = (
    "Token counts are estimated at four characters a token, because no tokenizer of an embedding "
    "model is available; chunks may exceed the model's limit. Prepare a model and chunk again."
)


class TokenCounter(Protocol):
    """Counts as the embedding model will."""

    @property
    def overhead(self) -> int:
        """Tokens that the model's prefix and special tokens add to every text."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without prefix and special tokens, in order."""
        ...


class EstimateCounter:
    """ceil(code points / 4), for use only where there is no tokenizer."""

    overhead: int = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Estimated tokens of each text."""
        return [(len(text) + 3) // 4 for text in texts]


def counting_warning(counter: TokenCounter) -> str | None:
    """The sentence to record with a document whose tokens were only estimated, else None."""
    return ESTIMATE_WARNING if isinstance(counter, EstimateCounter) else None


def count_tokens(counter: TokenCounter, texts: Sequence[str]) -> list[int]:
    """Counts of all texts in one call, checked; no call for no texts.

    Raises:
        IntegrityError: the counter returned another number of counts, or a negative one.
    """
    if not texts:
        return []
    counts = counter.count(texts)
    if len(counts) != len(texts) or min(counts) < 0:
        raise IntegrityError(
            f"The token counter gave {len(counts)} counts for {len(texts)} texts.",
            next_step="Use a counter that returns one count of at least 0 for each text.",
        )
    return counts


def sparing(counter: TokenCounter) -> TokenCounter:
    """The counter, or one that counts no line twice where lines may be counted one by one.

    A counter whose tokens never span white space says so with a true attribute `adds_up`: a text
    has as many tokens as its lines together. Blocks are counted to pack them and chunks to be
    sure; with such a counter the second count is a sum.
    """
    return _ByLine(counter) if getattr(counter, "adds_up", False) else counter


class _ByLine:
    """Remembers lines; lives as long as one document is chunked."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {"": 0}

    @property
    def overhead(self) -> int:
        return self._counter.overhead

    def count(self, texts: Sequence[str]) -> list[int]:
        lines = [text.split("\n") for text in texts]
        new = list(
            dict.fromkeys(line for text in lines for line in text if line not in self._known)
        )
        self._known.update(zip(new, count_tokens(self._counter, new), strict=True))
        return [sum(map(self._known.__getitem__, text)) for text in lines]
