"""A unigram tokenizer that loads fast and small.

Belongs here: normalisation, segmentation, offsets of the XLM-R vocabulary. What does not: prefixes,
special tokens and limits (`tokens`). It gives the token ids that `tokenizers` gives (the tests
compare the two) for a fraction of its loading time and memory (bench/embed.py), because a command
that embeds one question loads it each time. Special tokens are never read from text: `</s>` in a
document is four characters. The algorithm is Kudo's (2018, "Subword Regularization"), each word
segmented by Viterbi's.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from kb_resources.embed.prefixes import PrefixTree
from kb_resources.errors import IntegrityError

VOCABULARY_FILE = "vocabulary.txt"
NUMBERS_FILE = "vocabulary.bin"
_META = "▁"
_UNKNOWN_PENALTY = 10.0
_CACHED_WORDS = 65_536
_CACHED_LENGTH = 48
_WORD = re.compile(r"\S+")

# SentencePiece's `nmt` rules: control characters vanish, odd spaces become a space.
_NMT: dict[int, str | None] = dict.fromkeys(
    [*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]
) | dict.fromkeys(
    [
        0x09,
        0x0A,
        0x0C,
        0x0D,
        0x1680,
        *range(0x200B, 0x2010),
        0x2028,
        0x2029,
        0x2581,
        0xFEFF,
        0xFFFD,
    ],
    " ",
)


def normalise(text: str) -> str:
    """Text as the vocabulary was trained on: NMT rules, then NFKC."""
    return unicodedata.normalize("NFKC", text.translate(_NMT))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces that text can be cut into, in code-point order.

    Attributes:
        pieces: sorted, without special tokens: no text may produce those.
        ids: token id of each piece, uint32.
        scores: log probability of each piece, float32.
        bos: id of `<s>`.
        eos: id of `</s>`.
        unk: id of `<unk>`.
    """

    pieces: Sequence[str]
    ids: array[int]
    scores: array[float]
    bos: int
    eos: int
    unk: int

    def write(self, folder: Path) -> None:
        """Write the two files that `read` reads."""
        head = json.dumps({"bos": self.bos, "eos": self.eos, "unk": self.unk})
        (folder / VOCABULARY_FILE).write_bytes("\n".join([head, *self.pieces]).encode())
        (folder / NUMBERS_FILE).write_bytes(_little(self.ids) + _little(self.scores))

    @classmethod
    def read(cls, folder: Path) -> Vocabulary:
        """Read a folder's vocabulary.

        Raises:
            IntegrityError: a file is missing or the two do not fit together.
        """
        try:
            head, *pieces = (folder / VOCABULARY_FILE).read_bytes().decode().split("\n")
            numbers = (folder / NUMBERS_FILE).read_bytes()
            facts = json.loads(head)
            ids, scores = _halves(numbers, 4 * len(pieces))
            return cls(pieces, _array("I", ids), _array("f", scores), **facts)
        except (OSError, ValueError, TypeError) as error:
            raise IntegrityError(
                f"The vocabulary in {folder} can't be read: {error}.",
                next_step="Run `kb models prepare --force`.",
            ) from error


def _halves(data: bytes, size: int) -> tuple[bytes, bytes]:
    if len(data) != 2 * size:
        raise ValueError(f"{len(data)} bytes of numbers, expected {2 * size}")
    return data[:size], data[size:]


def _little(values: array[Any]) -> bytes:
    ordered = array(values.typecode, values)
    if sys.byteorder != "little":
        ordered.byteswap()
    return ordered.tobytes()


def _array(typecode: str, data: bytes) -> array[Any]:
    values: array[Any] = array(typecode)
    values.frombytes(data)
    if sys.byteorder != "little":
        values.byteswap()
    return values


class UnigramTokenizer:
    """Token ids and offsets of plain text, without prefix and special tokens."""

    adds_up = True
    """Words are segmented one by one, and a line break parts words: lines can be counted apart."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Bind to a vocabulary."""
        self._vocabulary = vocabulary
        self._unknown_score = min(vocabulary.scores, default=0.0) - _UNKNOWN_PENALTY
        self._tree = PrefixTree(vocabulary.pieces)
        self._cached = lru_cache(maxsize=_CACHED_WORDS)(self._segment)

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """Special tokens before and after every text."""
        return [self._vocabulary.bos], [self._vocabulary.eos]

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that frame a text or stand for what the vocabulary lacks."""
        return frozenset({self._vocabulary.bos, self._vocabulary.eos, self._vocabulary.unk})

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        return [
            [token for word in normalise(text).split() for token in self._word(word)[0]]
            for text in texts
        ]

    def _word(self, word: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self._cached(word) if len(word) <= _CACHED_LENGTH else self._segment(word)

    def _segment(self, word: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The best segmentation of one word: ids, and where each piece ends in `▁word`."""
        ids, scores = self._vocabulary.ids, self._vocabulary.scores
        unk, unknown_score = self._vocabulary.unk, self._unknown_score
        tree, text = self._tree, _META + word
        length = len(text)
        best = [float("-inf")] * (length + 1)
        best[0] = 0.0
        came_from = [0] * (length + 1)
        piece = [unk] * (length + 1)
        for start in range(length):
            base, known = best[start], False
            node = tree.root
            for end in range(start + 1, length + 1):
                try:
                    child = node.children[text[end - 1]]
                except KeyError:
                    child = tree.grow(node, text[start:end])
                if child is None:
                    break  # no piece begins like this
                node = child
                at = node.at
                if at < 0:
                    continue
                known = known or end == start + 1
                score = base + scores[at]
                if score > best[end]:
                    best[end], came_from[end], piece[end] = score, start, ids[at]
            if not known and base + unknown_score > best[start + 1]:
                best[start + 1] = base + unknown_score
                came_from[start + 1], piece[start + 1] = start, unk
        found: list[int] = []
        ends: list[int] = []
        end = length
        while end > 0:
            if not (found and piece[end] == unk == found[-1]):  # a run counts as one token
                found.append(piece[end])
                ends.append(end)
            end = came_from[end]
        return tuple(reversed(found)), tuple(reversed(ends))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open code-point span of each token in `text`, in order.

        Tokens that normalisation draws from one character share its span; the bare mark before a
        word has an empty one.
        """
        normalised, origin = _aligned(text)
        spans: list[tuple[int, int]] = []
        for found in _WORD.finditer(normalised):
            place = origin[found.start() : found.end()]
            start = 0
            for end in self._word(found.group())[1]:
                end = max(end - 1, 0)  # the ends count the mark before the word
                first = place[start][0]
                spans.append((first, place[end - 1][1] if end > start else first))
                start = end
        return spans


def _aligned(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The normalised text and, for each of its characters, the span it was made from."""
    parts: list[str] = []
    origin: list[tuple[int, int]] = []
    for start, end in pairwise(_borders(text)):
        part = normalise(text[start:end])
        parts.append(part)
        origin += [(start, end)] * len(part)
    return "".join(parts), origin


def _borders(text: str) -> list[int]:
    """Where `text` may be cut so that the slices normalise independently of each other."""
    borders = [at for at, char in enumerate(text) if at == 0 or not _attaches(char)]
    return [*borders, len(text)]


@lru_cache(maxsize=4096)
def _attaches(char: str) -> bool:
    """Whether a character may change together with the one before it."""
    first = normalise(char)[:1]
    return (
        not first
        or unicodedata.category(first).startswith("M")
        or "\u1160" <= first <= "\u11ff"  # Hangul vowels and finals
    )
