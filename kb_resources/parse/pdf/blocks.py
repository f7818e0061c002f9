"""Lines to blocks: what forms one paragraph, list item, heading or piece of code.

Belongs here: joining neighbouring lines of one column by spacing, size, style and indent. Not
here: what a block is called (`labels`) and where it is read (`order`).
Compare the rules of XY-cut and "docstrum" (O'Gorman, 1993); these work on neighbours likewise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kb_resources.parse.pdf.columns import Gutters
from kb_resources.parse.pdf.ink import Box, enclose
from kb_resources.parse.pdf.lines import Line
from kb_resources.parse.pdf.marks import CAPTION, MARKER, SENTENCE_END
from kb_resources.parse.pdf.profile import Profile
from kb_resources.parse.promote import is_division, opens_division, opens_provision

_WEIGHT = re.compile(
    r"(?:light|regular|roman|book|medium|semi|demi|bold|black|heavy|italic|MT)+$", re.IGNORECASE
)


_FIRST_PARAGRAPH = re.compile(r"\(1[a-z]?\)\s")
_EVEN_SHARE = 0.85
_EVEN_LINES = 8


@dataclass(slots=True)
class Cluster:
    """Lines that belong together, in one column."""

    column: int
    lines: list[Line]
    left: float
    right: float
    lead: float | None = field(default=None)

    @property
    def first(self) -> Line:
        """The topmost line."""
        return self.lines[0]

    @property
    def last(self) -> Line:
        """The lowest line."""
        return self.lines[-1]

    @property
    def is_item(self) -> bool:
        """Whether it starts like a list item."""
        return starts_item(self.first)

    @property
    def box(self) -> Box:
        """Its place in the flow frame."""
        return enclose(line.box for line in self.lines)

    @property
    def shown(self) -> Box:
        """Its place in the page frame."""
        return enclose(line.shown for line in self.lines)

    def add(self, line: Line) -> None:
        """Put a line under the last one."""
        gap = line.box.top - self.last.box.bottom
        if gap > -0.5 * line.em:
            self.lead = gap if self.lead is None else min(self.lead, gap)
        self.lines.append(line)
        self.left, self.right = min(self.left, line.box.left), max(self.right, line.box.right)


def starts_item(line: Line) -> bool:
    """Whether a line begins with a bullet, an ordered marker or a note's number."""
    if is_division(line.text):
        return False
    return line.bullet or line.note or MARKER.match(line.text) is not None


def family(font: str) -> str:
    """A font's name without weight and style: what headings share or do not share with text."""
    return _WEIGHT.sub("", font.split("-")[0].split(",")[0]).lower()


def cluster_lines(lines: Sequence[Line], gutters: Gutters, usual: Profile) -> list[Cluster]:
    """Blocks of one flow; each line is in exactly one."""
    column_of = [gutters.column(line) for line in lines]
    rights: dict[int, float] = {}
    for line, column in zip(lines, column_of, strict=True):
        rights[column] = max(rights.get(column, 0.0), line.box.right)
    order = sorted(
        range(len(lines)), key=lambda i: (column_of[i], lines[i].box.top, lines[i].box.left)
    )
    lead, even = _usual_lead([(lines[i], column_of[i]) for i in order])
    clusters: list[Cluster] = []
    for index in order:
        line, column = lines[index], column_of[index]
        home = next(
            (
                cluster
                for cluster in reversed(clusters[-8:])
                if cluster.column == column
                and _continues(cluster, line, rights[column], lead, usual)
                and not (even and _broke_early(cluster, line, rights[column]))
            ),
            None,
        )
        if home is None:
            clusters.append(Cluster(column, [line], line.box.left, line.box.right))
        else:
            home.add(line)
    return clusters


def _usual_lead(lines: list[tuple[Line, int]]) -> tuple[float, bool]:
    """The most frequent white space between neighbouring lines, and whether nearly all have it.

    Where all have it, spacing does not tell paragraphs apart.
    """
    gaps: Counter[int] = Counter()
    for (upper, column), (lower, other) in pairwise(lines):
        gap = lower.box.top - upper.box.bottom
        alike = column == other and abs(upper.size - lower.size) <= 0.6
        if alike and -0.2 * upper.em < gap < 2.2 * upper.em:
            gaps[round(gap)] += 1
    if not gaps:
        return 3.0, False
    gap, count = gaps.most_common(1)[0]
    close = sum(n for other, n in gaps.items() if abs(other - gap) <= 1)
    return float(gap), close >= _EVEN_SHARE * gaps.total() and count >= _EVEN_LINES


def _broke_early(cluster: Cluster, line: Line, column_right: float) -> bool:
    """Whether the line's first word had room on the line above: somebody ended a paragraph."""
    if line.mono:
        return False
    needed = line.first_width + 0.6 * line.em
    return cluster.last.box.right + needed < column_right - 0.1 * (column_right - cluster.left)


def _continues(
    cluster: Cluster, line: Line, column_right: float, lead: float, usual: Profile
) -> bool:
    """Whether a line goes on the cluster above it."""
    last, em = cluster.last, line.em
    gap = line.box.top - last.box.bottom
    overlap = min(line.box.right, cluster.right) - max(line.box.left, cluster.left)
    item = cluster.is_item
    if overlap <= 0 and not (item and line.box.left >= cluster.left):
        return False
    expected = cluster.lead
    if expected is None:
        near_body = abs(line.size - usual.size) <= 1
        expected = max(lead, 0.2 * em) if near_body else 0.65 * em
    if gap > max(expected + 0.35 * em, 0.2 * em) or gap < -0.7 * em:
        return False
    return _same_style(cluster, line, column_right) and (
        cluster.first.mono or _same_paragraph(cluster, line, column_right)
    )


def _same_style(cluster: Cluster, line: Line, column_right: float) -> bool:
    first, last = cluster.first, cluster.last
    marker_only = len(cluster.lines) == 1 and len(last.text) <= 4 and starts_item(last)
    if abs(line.size - last.size) > max(0.12 * line.size, 0.6) and not marker_only:
        return False
    if line.mono != first.mono:
        return False
    full = last.box.right > 0.92 * column_right
    ended = SENTENCE_END.search(last.text) is not None
    alone = len(cluster.lines) == 1 and not marker_only
    if alone and family(line.font) != family(first.font):
        resized = abs(line.size - first.size) >= 0.5
        if resized or last.box.right < column_right - 0.15 * (column_right - cluster.left):
            return False
    hangs = cluster.is_item and not ended and line.box.left > first.box.left + 2
    if hangs or first.note:
        return True  # a bold or slanted lead of an item or a note runs on in plain type
    turned = line.italic != first.italic and len(cluster.lines) <= 2
    if turned and not full and len(first.text) < 90:
        return False
    if line.bold != first.bold:
        runs_on = full and not ended and not first.bold
        emphasised = len(cluster.lines) > 1 and not (line.bold and ended)
        return runs_on or emphasised or (marker_only and not line.bold)
    return True


def _same_paragraph(cluster: Cluster, line: Line, column_right: float) -> bool:
    first, last, em = cluster.first, cluster.last, line.em
    ended = SENTENCE_END.search(last.text) is not None
    width = column_right - cluster.left
    item = cluster.is_item
    loose = ended or last.box.right < column_right - 0.1 * width
    if is_division(first.text) or (loose and is_division(line.text)):
        return False  # "Article 5" stands alone; at the end of a sentence it is a reference
    if opens_provision(line.text) and (ended or opens_division(first.text)):
        return False
    if not ended and _FIRST_PARAGRAPH.match(line.text) and opens_provision(first.text):
        return False  # a caption, however wide, ends where its first paragraph begins
    if starts_item(line):
        sibling = item and abs(line.box.left - first.box.left) <= 3
        if sibling or (loose and (item or line.box.left <= cluster.left + 3)):
            return False
    if CAPTION.match(line.text) and ended:
        return False
    if item:
        return line.box.left >= first.box.left - 2
    indented = cluster.left + 0.8 * em < line.box.left < cluster.left + 4 * em
    if indented and ended:
        return False
    short = last.box.right < column_right - 0.28 * width
    return not (short and ended and line.box.left <= cluster.left + 2)
