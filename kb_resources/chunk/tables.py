"""Tables too long for one chunk: by rows, wide rows by cells, each piece with its column names.

Belongs here: reading a Markdown table's lines and cells, and which rows or cells share a chunk.
The header row and the introducing paragraph go into the context of every piece that does not hold
them, so that spans stay disjoint (requirements P-14, O-05).
Syntax: GitHub Flavored Markdown, section 4.10, https://github.github.com/gfm/#tables-extension-.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from kb_resources.chunk.context import joined
from kb_resources.chunk.counting import TokenCounter, count_tokens
from kb_resources.chunk.packing import anchors, pack
from kb_resources.chunk.splitting import LINES, PROSE, Oversized, Segment, measure, split

_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*+\|?[ \t]*")
_PIPE: Final = re.compile(r"(?<!\\)\|[ \t]*")
_NAME_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Table:
    """A table to cut.

    Attributes:
        segment: its stretch of the body.
        budget: tokens for text, introduction and header together.
        intro: the introducing paragraph for contexts, may be empty.
        lead_start: where what shares the first piece begins (headings, the introduction).
        lead_tokens: of what stands there before the table.
    """

    segment: Segment
    budget: int
    intro: str
    lead_start: int
    lead_tokens: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a table that makes a chunk.

    Attributes:
        start: first code point in the body.
        end: exclusive.
        extra: what its context says beyond the breadcrumb.
        rest: the same for a later part of it, should it have to be cut again.
        room: tokens left for what follows the table.
    """

    start: int
    end: int
    extra: str
    rest: str
    room: int = 0


@dataclass(slots=True)
class _Plan:
    table: Table
    header: Segment | None
    names: list[str]
    rows: list[Segment]
    name_tokens: list[int]
    intro: str
    intro_tokens: int = 0
    header_tokens: int = 0

    @property
    def room(self) -> int:
        """Tokens for rows beside introduction and header."""
        return self.table.budget - self.intro_tokens - self.header_tokens

    def cell_room(self, column: int) -> int:
        return self.table.budget - self.intro_tokens - self.name_tokens_of(column)

    def name_tokens_of(self, column: int) -> int:
        return self.name_tokens[column] + 1 if column < len(self.name_tokens) else 0


def cut_tables(body: str, tables: Sequence[Table], counter: TokenCounter) -> list[list[Piece]]:
    """Pieces of each table, in order; together they are the table.

    Args:
        body: what the segments point into.
        tables: all tables of a document that need cutting.
        counter: asked once for all rows and headers, and once a level for wide rows.
    """
    plans = [_read(body, table) for table in tables]
    _measure(body, plans, counter)
    _split_wide(body, plans, counter)
    return [_led(plan, list(_pieces(body, plan))) for plan in plans]


def _read(body: str, table: Table) -> _Plan:
    start, end = table.segment.start, table.segment.end
    bounds = [start]
    while (newline := body.find("\n", bounds[-1], end)) >= 0 and newline + 1 < end:
        bounds.append(newline + 1)
    bounds.append(end)
    lines = [Segment(a, b) for a, b in pairwise(bounds)]
    if len(lines) > 1 and _RULE.fullmatch(body[lines[1].start : lines[1].end].strip("\n")):
        header = Segment(start, lines[1].end)
        cells = _cells(body, start, lines[0].end)
        names = [body[a:b].strip(" \t\n|") for a, b in pairwise([start, *cells, lines[0].end])]
        names = [name[:_NAME_CHARS] for name in names]
        return _Plan(table, header, names if any(names) else [], lines[2:], [], table.intro)
    return _Plan(table, None, [], lines, [], table.intro)


def _cells(body: str, start: int, end: int) -> list[int]:
    """Cuts after each pipe between two cells."""
    inner = body[start:end].rstrip(" \t\n|")
    return [m.end() for m in _PIPE.finditer(body, start + 1, start + len(inner)) if m.end() < end]


def _led(plan: _Plan, pieces: list[Piece]) -> list[Piece]:
    """Let the first piece begin with the lead, and not repeat the introduction if it is there."""
    table, first = plan.table, pieces[0]
    if table.lead_start < first.start:
        extra = first.extra.removeprefix(plan.intro).lstrip("\n")
        pieces[0] = replace(first, start=table.lead_start, extra=extra)
    return pieces


def _row(names: Iterable[str]) -> str:
    return f"| {' | '.join(names)} |"


def _measure(body: str, plans: Sequence[_Plan], counter: TokenCounter) -> None:
    texts = [t for p in plans for t in (p.table.intro, _row(p.names) if p.names else "", *p.names)]
    counts = iter(count_tokens(counter, texts))
    for plan in plans:
        plan.intro_tokens, plan.header_tokens = next(counts), next(counts)
        plan.name_tokens = [next(counts) for _ in plan.names]
        if 2 * (plan.intro_tokens + plan.header_tokens) > plan.table.budget:
            plan.intro, plan.intro_tokens = "", 0
    segments = [row for plan in plans for row in plan.rows]
    segments += [plan.header for plan in plans if plan.header]
    largest = max((plan.table.budget for plan in plans), default=0)
    measure(body, segments, largest, counter)


def _split_wide(body: str, plans: Sequence[_Plan], counter: TokenCounter) -> None:
    """Cut rows that do not fit with the header into cells, and cells that are still too long."""
    cells: list[tuple[Segment, int]] = []
    todo: list[Oversized] = []
    for plan in plans:
        if plan.header and plan.header.tokens > plan.table.budget:
            todo.append(Oversized(plan.header, plan.table.budget, (_cells, *LINES)))
        for row in plan.rows:
            if row.tokens > plan.room or 2 * plan.header_tokens > plan.table.budget:
                bounds = [row.start, *_cells(body, row.start, row.end), row.end]
                row.parts = [Segment(a, b) for a, b in pairwise(bounds)]
                cells += [(cell, plan.cell_room(i)) for i, cell in enumerate(row.parts)]
    measure(body, [cell for cell, _ in cells], max((r for _, r in cells), default=0), counter)
    todo += [Oversized(cell, room, PROSE) for cell, room in cells if cell.tokens > room]
    split(body, todo, counter)


def _pieces(body: str, plan: _Plan) -> Iterator[Piece]:
    intro = plan.intro
    header = _row(plan.names) if plan.names else ""
    waiting: list[Segment] = []
    if plan.header:
        if plan.header.parts:
            yield from _groups(list(plan.header.leaves()), plan.table.budget, intro)
        elif plan.rows and not plan.rows[0].parts:
            # Header and lead stand in the text of the first piece, not in its context.
            first = plan.rows.pop(0)
            inside = plan.header.tokens + plan.table.lead_tokens
            slack = max(0, inside - plan.header_tokens - plan.intro_tokens)
            waiting.append(Segment(plan.header.start, first.end, first.tokens + slack))
        else:
            yield Piece(plan.header.start, plan.header.end, intro, intro)
    head_start = plan.header.start if plan.header else -1

    def flush() -> Iterator[Piece]:
        sizes = [row.tokens for row in waiting]
        spans = ((row.start, row.end) for row in waiting)
        starts = pack(sizes, plan.room, anchors(body, spans, sizes, plan.room))
        for a, b in pairwise([*starts, len(waiting)]):
            held = waiting[a].start == head_start
            rest = joined(intro, header)
            room = plan.room - sum(sizes[a:b])
            extra = intro if held else rest
            yield Piece(waiting[a].start, waiting[b - 1].end, extra, rest, room)
        waiting.clear()

    for row in plan.rows:
        if not row.parts:
            waiting.append(row)
            continue
        yield from flush()
        yield from _wide_row(body, plan, row, intro)
    yield from flush()


def _groups(leaves: Sequence[Segment], budget: int, extra: str) -> Iterator[Piece]:
    starts = pack([leaf.tokens for leaf in leaves], budget)
    for a, b in pairwise([*starts, len(leaves)]):
        yield Piece(leaves[a].start, leaves[b - 1].end, extra, extra)


def _wide_row(body: str, plan: _Plan, row: Segment, intro: str) -> Iterator[Piece]:
    """One row as groups of cells, each with its columns' names, later ones with the row's name."""
    leaves = [(leaf, i) for i, cell in enumerate(row.parts) for leaf in cell.leaves()]
    sizes = [leaf.tokens + plan.name_tokens_of(column) for leaf, column in leaves]
    key_tokens = min(row.parts[0].tokens, plan.table.budget // 8)
    starts = pack(sizes, plan.table.budget - plan.intro_tokens - key_tokens)
    for a, b in pairwise([*starts, len(leaves)]):
        names = plan.names[leaves[a][1] : leaves[b - 1][1] + 1]
        key = body[row.parts[0].start : row.parts[0].end].strip(" \t\n|")[:_NAME_CHARS]
        extra = joined(intro, _row(names) if names else "", key if leaves[a][1] else "")
        yield Piece(leaves[a][0].start, leaves[b - 1][0].end, extra, extra)
