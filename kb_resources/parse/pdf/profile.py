"""What is usual in a document: body size, body font, how common bold and italic are.

Belongs here: counts over all lines, one pass. Headings are what departs from the usual, so they
cannot be told without it. Compare the "modal font size" of many PDF outline extractors, such as
https://github.com/pdf2htmlEX/pdf2htmlEX and pdfminer's layout notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kb_resources.parse.pdf.lines import Line

_MIN_BULLETS = 3


@dataclass(frozen=True, slots=True)
class Profile:
    """The usual of one document.

    Attributes:
        size: most frequent font size by characters, points.
        font: most frequent font.
        font_share: share of characters in it, 0..1.
        bold_share: share of bold characters.
        italic_share: share of slanted characters.
        bullets: first words (text, font) that start so many lines that they are bullets.
    """

    size: float = 10.0
    font: str = ""
    font_share: float = 0.0
    bold_share: float = 0.0
    italic_share: float = 0.0
    bullets: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class Census:
    """Counts lines as pages come in."""

    _sizes: Counter[float] = field(default_factory=Counter)
    _fonts: Counter[str] = field(default_factory=Counter)
    _leads: Counter[tuple[str, str]] = field(default_factory=Counter)
    _bold: int = 0
    _italic: int = 0

    def add(self, lines: Iterable[Line]) -> None:
        """Count one page."""
        for line in lines:
            count = len(line.text)
            self._sizes[line.size] += count
            self._fonts[line.font] += count
            if line.lead is not None:
                self._leads[line.lead] += 1
            self._bold += count * line.bold
            self._italic += count * line.italic

    def result(self) -> Profile:
        """The usual of everything counted so far."""
        total = sum(self._sizes.values())
        if not total:
            return Profile()
        font, count = self._fonts.most_common(1)[0]
        return Profile(
            size=self._sizes.most_common(1)[0][0],
            font=font,
            font_share=count / total,
            bold_share=self._bold / total,
            italic_share=self._italic / total,
            bullets=frozenset(lead for lead, n in self._leads.items() if n >= _MIN_BULLETS),
        )
