"""Levels of headings, over the whole document.

Belongs here: ranking by outline depth, then numbering, then size and weight. Not here: whether a
block is a heading (`labels`). docling ranks by numbering and font likewise in its
heading-hierarchy stage: https://github.com/docling-project/docling
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.pdf.labels import title_keys
from kb_resources.parse.pdf.marks import OUTLINE_NUMBER
from kb_resources.parse.pdf.mend import squeeze
from kb_resources.parse.pdf.pdfium import OutlineEntry

MAX_LEVEL = 6
_MADE_UP = re.compile(
    r"^(?:untitled.*|microsoft (?:word|powerpoint|excel) - .*|(?:document|layout|slide|page)\s*\d*"
    r"|.*\.(?:docx?|pdf|indd|qxp?d?|tex|dvi|rtf|odt|pptx?|xlsx?|html?)|\W*|без имени.*|\w:\\.*)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class HeadingStyle:
    """How a heading looks: text, size in points, weight."""

    text: str
    size: float
    bold: bool


def heading_levels(headings: Sequence[HeadingStyle], outline: Sequence[OutlineEntry]) -> list[int]:
    """A level from 1 to 6 for every heading, in document order.

    A heading that the outline names takes its depth there. The others take the level of their
    number ("2.3" lies one below "2"), or of their rank by size and weight among all headings.
    """
    depth = {key: e.depth for e in reversed(outline) for key in title_keys(e.title)}
    ranks = _style_ranks(headings)
    levels: list[int] = []
    by_count: dict[int, int] = {}
    for heading in headings:
        named = next((depth[key] for key in title_keys(heading.text) if key in depth), None)
        number = OUTLINE_NUMBER.match(heading.text)
        if named is not None:
            level = named
        elif number is not None:
            parts = number[1].count(".") + 1
            top = by_count.setdefault(1, ranks[_style(heading)] - parts + 1)
            level = max(top, 1) + parts - 1
        else:
            level = ranks[_style(heading)]
        levels.append(min(max(level, 1), MAX_LEVEL))
    return levels


def best_title(named: str, drafts: Sequence[DraftBlock]) -> str | None:
    """The document's own title unless a program made it up, else its highest early heading."""
    title = squeeze(named)
    if title and not _MADE_UP.match(title):
        return title
    early = [d for d in drafts if d.kind == "heading" and (d.page or 1) <= 2]
    wordy = [d for d in early if " " in d.text] or early
    best = min(wordy, key=lambda draft: draft.level or MAX_LEVEL, default=None)
    return best.text if best is not None else None


def _style(heading: HeadingStyle) -> tuple[float, bool]:
    return round(heading.size * 2) / 2, heading.bold


def _style_ranks(headings: Sequence[HeadingStyle]) -> dict[tuple[float, bool], int]:
    """Rank of each style: larger first, bold before regular of the same size.

    Styles above every recurring one (cover, title) share the first rank; sizes within a tenth of
    each other share a rank too, so that ranks stay few.
    """
    counts = Counter(_style(heading) for heading in headings)
    styles = sorted(counts, key=lambda style: (-style[0], not style[1]))
    recurring = [style for style in styles if counts[style] > 1]
    top = recurring[0] if recurring else None
    ranks: dict[tuple[float, bool], int] = {}
    rank, last = 0, None
    for style in styles:
        single_on_top = top is not None and styles.index(style) < styles.index(top)
        if single_on_top:
            rank = 1
        elif last is None or style[0] < 0.92 * last[0] or style[1] != last[1]:
            rank += 1
            last = style
        ranks[style] = min(rank, MAX_LEVEL)
    return ranks
