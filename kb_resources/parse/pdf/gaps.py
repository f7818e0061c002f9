"""Tables without walls: columns are white strips that run through the rows.

Belongs here: open tables between horizontal rules, tables by alignment alone, tables of contents.
Their rows are rebuilt by guesswork, so their confidence is lower. Not here: `grid`.
Compare the "stream" method of https://github.com/camelot-dev/camelot (MIT).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from kb_resources.parse.pdf.cells import TableFound, build_table, cell_text
from kb_resources.parse.pdf.ink import Box, Word
from kb_resources.parse.pdf.lines import rows_of
from kb_resources.parse.pdf.marks import LEADERS

_STRIP_EM = 0.55
_CROSSING_SHARE = 0.15
_MIN_FILLED = 0.45
_RULED_CONFIDENCE = 0.8
_BARE_CONFIDENCE = 0.6
_CONTENTS_CONFIDENCE = 0.7
_CONTENTS_TAIL = re.compile(
    r"^(?P<title>.*?)\s*(?:\.\s?){3,}\s*(?P<page>[\divxlcIVXLC-]{1,8})?\s*$"
)

_PAGE = re.compile(r"^[\dA-Z]{0,3}[-–.]?(?:\d{1,5}|[ivxlc]{1,8}|[IVXLC]{1,8})$")

Row = list[Word]


def strips_of(rows: Sequence[Row], em: float) -> list[float]:
    """Centres of the white strips between columns, from left to right.

    A strip may be crossed by few rows (headings over several columns) and must have text on both
    sides in at least two rows.
    """
    allowed = max(int(_CROSSING_SHARE * len(rows)), 1 if len(rows) > 3 else 0)
    events: list[tuple[float, int]] = []
    for row in rows:
        for left, right in _runs(row, 0.35 * em):
            events.append((left, 1))
            events.append((right, -1))
    events.sort(key=lambda event: (event[0], event[1]))
    strips, covering, opened = [], 0, None
    for x, step in events:
        before = covering
        covering += step
        if before > allowed >= covering:
            opened = x
        elif before <= allowed < covering and opened is not None:
            if x - opened >= _STRIP_EM * em:
                strips.append((opened + x) / 2)
            opened = None
    return strips


def _runs(row: Row, gap: float) -> list[tuple[float, float]]:
    """Extents of words that stand close together."""
    runs: list[tuple[float, float]] = []
    for word in row:
        if runs and word.box.left - runs[-1][1] <= gap:
            runs[-1] = (runs[-1][0], max(runs[-1][1], word.box.right))
        else:
            runs.append((word.box.left, word.box.right))
    return runs


def _by_column(row: Row, strips: Sequence[float]) -> list[list[Word]]:
    columns: list[list[Word]] = [[] for _ in range(len(strips) + 1)]
    for word in row:
        centre = (word.box.left + word.box.right) / 2
        columns[sum(centre > strip for strip in strips)].append(word)
    return columns


def gap_table(words: Sequence[Word], floors: Sequence[Box], *, ruled: bool) -> TableFound | None:
    """A table from words that stand in columns, or None when they do not.

    Args:
        words: everything in the region.
        floors: horizontal rules in or around it.
        ruled: whether rules bound the region, which lowers the demands on alignment.
    """
    rows = rows_of(list(words))
    if len(rows) < 2:
        return None
    em = median(word.size for word in words)
    strips = strips_of(rows, em)
    if not strips:
        return None
    split = [_by_column(row, strips) for row in rows]
    if not (_looks_tabular(split, ruled=ruled)):
        return None
    groups = _row_groups(rows, split, floors, em)
    texts = [
        [
            cell_text([w for i in group for w in split[i][column]]) if group else ""
            for column in range(len(strips) + 1)
        ]
        for group in groups
    ]
    return build_table(
        texts,
        words,
        header_rows=_header_rows(groups, rows, floors),
        confidence=_RULED_CONFIDENCE if ruled else _BARE_CONFIDENCE,
    )


def _looks_tabular(split: Sequence[Sequence[list[Word]]], *, ruled: bool) -> bool:
    """Enough rows fill several columns, and the columns do not all hold running prose."""
    columns = len(split[0])
    several = sum(sum(bool(cell) for cell in row) >= 2 for row in split)
    if several < (2 if ruled else 3) or several < 0.4 * len(split):
        return False
    lengths = [
        [sum(len(word.text) + 1 for word in row[c]) for row in split if row[c]]
        for c in range(columns)
    ]
    typical = [median(column) for column in lengths if column]
    if min(typical) > 28:  # every column reads like prose: columns of a page
        return False
    if ruled:
        return True
    filled = sum(bool(cell) for row in split for cell in row)
    if filled < _MIN_FILLED * columns * len(split):
        return False
    short = sum(length < 26 for length in typical)
    return columns >= 3 and short >= columns - 1 and median(typical) < 26


def _row_groups(
    rows: Sequence[Row], split: Sequence[Sequence[list[Word]]], floors: Sequence[Box], em: float
) -> list[list[int]]:
    """Visual rows gathered into table rows: by rules, by spacing, or by an empty first column."""
    tops = [min(word.box.top for word in row) for row in rows]
    bottoms = [max(word.box.bottom for word in row) for row in rows]
    middles = [(top + bottom) / 2 for top, bottom in zip(tops, bottoms, strict=True)]
    between = [
        any(middles[i] < floor.top < middles[i + 1] for floor in floors)
        for i in range(len(rows) - 1)
    ]
    mostly_ruled = sum(between) >= max(2, 0.3 * (len(rows) - 1))
    gaps = [middles[i + 1] - middles[i] for i in range(len(rows) - 1)]
    tight = min(gaps) if gaps else 0.0
    loose = any(gap > 1.35 * tight for gap in gaps) and tight < 1.6 * em
    groups = [[0]]
    for index in range(1, len(rows)):
        if mostly_ruled:
            joins = not between[index - 1] and gaps[index - 1] <= 1.5 * tight
        elif between[index - 1]:
            joins = False
        else:
            first_empty = not split[index][0]
            close = gaps[index - 1] <= 1.2 * tight
            joins = first_empty and (close or not loose)
        if joins:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _header_rows(groups: Sequence[list[int]], rows: Sequence[Row], floors: Sequence[Box]) -> int:
    """Rows above the first inner rule, at most three; one where no rule tells."""
    for count in range(1, min(4, len(groups))):
        upper = max(word.box.bottom for word in rows[groups[count - 1][-1]])
        lower = min(word.box.top for word in rows[groups[count][0]])
        if any(upper - 3 <= floor.top <= lower + 3 for floor in floors):
            return count
    return 1


def page_edge(rows: Iterable[Row]) -> float:
    """Right edge of the page numbers of a table of contents, from its rows with leader dots."""
    edges = sorted(row[-1].box.right for row in rows if _PAGE.match(row[-1].text))
    return edges[len(edges) // 2] if edges else float("inf")


def ends_in_page(row: Row, edge: float) -> bool:
    """Whether a row without leader dots ends in a page number under the others."""
    if len(row) < 2 or not _PAGE.match(row[-1].text) or abs(row[-1].box.right - edge) > 3:
        return False
    return row[-1].box.left - row[-2].box.right > row[-1].size


def contents_table(rows: Sequence[Row]) -> TableFound | None:
    """Lines of a table of contents as title and page, leader dots left out."""
    edge = page_edge(row for row in rows if LEADERS.search(" ".join(w.text for w in row)))
    entries: list[tuple[str, str]] = []
    pending = ""
    for row in rows:
        text = " ".join(word.text for word in row)
        found = _CONTENTS_TAIL.match(text)
        if found and LEADERS.search(text):
            title, page = found["title"], found["page"] or ""
        elif ends_in_page(row, edge):
            title, page = " ".join(word.text for word in row[:-1]), row[-1].text
        else:
            pending = f"{pending} {text}".strip()
            continue
        entries.append((f"{pending} {title}".strip(), page))
        pending = ""
    if pending:
        entries.append((pending, ""))
    return build_table(
        [list(entry) for entry in entries],
        [word for row in rows for word in row],
        header_rows=0,
        confidence=_CONTENTS_CONFIDENCE,
    )
