"""Does a text say what another says, word for word?

Belongs here: the measure and its thresholds. A body that is quoted must be the document's own
words, so nothing is weighed that could be counted: every sentence, heading, list item and cell has
to stand in the source as an unbroken run of words, and every block of the source has to be there
whole, but for short ones, which may be running heads.
How the thresholds were found: docs/adr/0014-model-stages.md. Requirement P-08.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

MIN_KEPT = 0.95
"""Share of the source's words: good conversions leave out running heads, .98 to 1 was measured."""
MAX_ADDED = 0.02
"""Words beyond those of the source: what is said twice is found nowhere else."""
_SHORT_WORDS = 8

# Words, and the signs that say something: amounts, shares, comparisons, a minus.
_WORD = re.compile(r"[^\W_]+|[$£¥€%‰±≠≤≥°§]|(?<![\w)])[-\u2212](?=\d)")
# Where one thing ends and the next begins: sentences, lines, cells.
_BORDER = re.compile(r"(?<=[.!?;:…])\s+|\n|\|")


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How far a conversion keeps to its source.

    Attributes:
        kept: share of the source's words that it has, 0..1.
        added: its words that the source lacks, counted with their number, as a share of its own.
        foreign: sentences, headings and cells that do not stand in the source.
        lost: blocks of the source that it has in part, or lacks though they have eight words.
    """

    kept: float
    added: float
    foreign: int
    lost: int

    @property
    def holds(self) -> bool:
        """Whether the conversion may stand for its source."""
        enough = self.kept >= MIN_KEPT and self.added <= MAX_ADDED
        return enough and not self.foreign and not self.lost

    def to_json(self) -> dict[str, float]:
        """Numbers for a report."""
        return {
            "kept": round(self.kept, 4),
            "added": round(self.added, 4),
            "foreign": self.foreign,
            "lost": self.lost,
        }


def faithfulness(body: str, raw_text: str, converted: str) -> Faithfulness:
    """Measure a conversion against what parsing gave.

    Args:
        body: what parsing made the body: what must be kept.
        raw_text: all visible text, running heads included: what may be there too.
        converted: the conversion's body.

    Returns:
        The measure; marks, spaces and case do not count, but for signs of amounts and comparisons.
    """
    source, beside = _Source(_words(body)), _Source(_words(raw_text))
    foreign = sum(
        not source.take(words) and not beside.take(words)
        for piece in _BORDER.split(converted)
        if (words := _words(piece))
    )
    blocks = [len(_words(block)) for block in body.split("\n\n")]
    made = _words(converted)
    known = Counter(source.words) | Counter(beside.words)
    return Faithfulness(
        kept=sum(source.taken) / max(1, len(source.words)),
        added=sum((Counter(made) - known).values()) / max(1, len(made)),
        foreign=foreign,
        lost=sum(_is_lost(taken) for taken in source.in_blocks(blocks)),
    )


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-")
    return _WORD.findall(plain)


class _Source:
    """A text whose words are taken in unbroken runs; `taken` has a 1 for each that was."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.taken = bytearray(len(words))
        self._joined = f" {' '.join(words)} "
        lengths = accumulate((len(word) + 1 for word in words), initial=0)
        self._starts = {start: nth for nth, start in enumerate(lengths)}
        self._at = 0

    def take(self, words: list[str]) -> bool:
        """Take a run: the next one behind the run before, else the first; False without one."""
        run = f" {' '.join(words)} "
        found = self._joined.find(run, self._at)
        found = self._joined.find(run) if found < 0 else found
        if found < 0:
            return False
        first = self._starts[found]
        self.taken[first : first + len(words)] = b"\1" * len(words)
        self._at = found + len(run) - 1
        return True

    def in_blocks(self, sizes: Iterable[int]) -> Iterator[bytes]:
        """`taken`, cut at the borders of blocks with so many words."""
        start = 0
        for size in sizes:
            yield bytes(self.taken[start : start + size])
            start += size


def _is_lost(taken: bytes) -> bool:
    """Whether a block is there in part, or not at all though it is no running head."""
    there = sum(taken)
    return there < len(taken) and (there > 0 or len(taken) >= _SHORT_WORDS)
