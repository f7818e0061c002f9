"""Does a text say what another says, word for word?

Belongs here: the measure and its thresholds. A body that is quoted must be the document's own
words, so nothing is weighed that could be counted: every sentence, heading, list item and cell has
to stand in the source as an unbroken run of words, and no paragraph of the source may be missing.
How the thresholds were found: docs/adr/0014-model-stages.md. Requirement P-08.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

MIN_KEPT = 0.95
"""Share of the source's words: good conversions leave out running heads, .98 to 1 was measured."""
MAX_ADDED = 0.02
"""Words beyond those of the source: what is said twice is found nowhere else."""
_BLOCK_WORDS = 8
_BLOCK_PAIRS = 0.7

_WORD = re.compile(r"[^\W_]+")
# Where one thing ends and the next begins: sentences, lines, cells.
_BORDER = re.compile(r"(?<=[.!?;:…])\s+|\n|\|")


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """How far a conversion keeps to its source.

    Attributes:
        kept: share of the source's words that it has, 0..1.
        added: its words that the source lacks, counted with their number, as a share of its own.
        foreign: sentences, headings and cells that do not stand in the source.
        lost: paragraphs of the source, of eight words or more, that it lacks.
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
        The measure; marks, spaces and case do not count.
    """
    source, made = _words(body), _words(converted)
    had, has = Counter(source), Counter(made)
    known = had | Counter(_words(raw_text))
    pairs = set(pairwise(made))
    return Faithfulness(
        kept=sum((had & has).values()) / max(1, len(source)),
        added=sum((has - known).values()) / max(1, len(made)),
        foreign=_foreign(converted, (source, _words(raw_text))),
        lost=sum(_is_lost(block, pairs) for block in body.split("\n\n")),
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _foreign(converted: str, sources: Sequence[list[str]]) -> int:
    """Pieces that are no run of words of any source; looked for behind the piece before first."""
    joined = [f" {' '.join(words)} " for words in sources]
    at = [0] * len(joined)
    foreign = 0
    for run in _runs(converted):
        for nth, text in enumerate(joined):
            found = text.find(run, at[nth])
            found = text.find(run) if found < 0 else found
            if found >= 0:
                at[nth] = found
                break
        else:
            foreign += 1
    return foreign


def _runs(text: str) -> Iterator[str]:
    for piece in _BORDER.split(text):
        if words := _words(piece):
            yield f" {' '.join(words)} "


def _is_lost(block: str, pairs: set[tuple[str, str]]) -> bool:
    words = _words(block)
    if len(words) < _BLOCK_WORDS:
        return False
    own = list(pairwise(words))
    return sum(pair in pairs for pair in own) < _BLOCK_PAIRS * len(own)
