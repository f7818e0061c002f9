"""Drafts that keep to sections: the hierarchical and the sentence strategy.

Belongs here: the order of the steps between borders (`layout`) and exact counts (`drafts`), each
of which works on the whole document, so that the counter is asked a few times only.
The design follows octabits' `chunkDocument` (requirements O-02 to O-06).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from kb_resources.chunk.context import breadcrumb_lines, lead
from kb_resources.chunk.counting import TokenCounter, count_tokens
from kb_resources.chunk.drafts import Draft
from kb_resources.chunk.layout import Chunkable, Placed, Run, runs
from kb_resources.chunk.options import ChunkOptions
from kb_resources.chunk.packing import anchors, pack
from kb_resources.chunk.splitting import LINES, PROSE, SENTENCES, Oversized, measure, split
from kb_resources.chunk.tables import Piece, Table, cut_tables
from kb_resources.chunk.units import Item, give_room, items, sentence_items

_PROBE: Final = ("x\n\nx", "x")


@dataclass(frozen=True, slots=True)
class _Plan:
    """One run on its way: its breadcrumb, the tokens left for text."""

    number: int
    run: Run
    crumbs: str
    budget: int


def section_drafts(
    document: Chunkable, placed: Sequence[Placed], counter: TokenCounter, options: ChunkOptions
) -> Iterator[Draft]:
    """Drafts in body order, each within one section, page and locator."""
    body = document.body
    by_sentence = options.strategy == "sentence"
    plans = _plans(document, runs(placed, document.pages), counter, options)
    split(body, [o for plan in plans for o in _to_split(plan, by_sentence=by_sentence)], counter)
    arranged = [
        sentence_items(plan.run.blocks, plan.budget)
        if by_sentence
        else items(plan.run.blocks, plan.budget, _before(plans, plan))
        for plan in plans
    ]
    tables = [
        _table(item, item.table, plan.budget)
        for plan, group in zip(plans, arranged, strict=True)
        for item in group
        if item.table is not None
    ]
    cut = cut_tables(body, tables, counter)
    pieces = {table.lead_start: found for table, found in zip(tables, cut, strict=True)}
    for plan, group in zip(plans, arranged, strict=True):
        yield from _drafts(document, plan, group, pieces)


def _plans(
    document: Chunkable, found: Sequence[Run], counter: TokenCounter, options: ChunkOptions
) -> list[_Plan]:
    """Runs with everything counted: one call for breadcrumbs, one for blocks."""
    limit = options.max_tokens - counter.overhead
    by_path = breadcrumb_lines(document.title, (run.heading_path for run in found), limit, counter)
    probe = count_tokens(counter, _PROBE)
    join = max(0, probe[0] - 2 * probe[1])
    budgets = [
        limit - options.overlap_tokens - join - by_path[run.heading_path].tokens for run in found
    ]
    blocks = [placed for run in found for placed in run.blocks]
    measure(document.body, blocks, limit, counter)
    for placed in blocks if join else ():
        placed.tokens += join
    for run, budget in zip(found, budgets, strict=True):
        give_room(run.blocks, budget)
    return [
        _Plan(number, run, by_path[run.heading_path].text, budget)
        for number, (run, budget) in enumerate(zip(found, budgets, strict=True))
    ]


def _to_split(plan: _Plan, *, by_sentence: bool) -> Iterator[Oversized]:
    for placed in plan.run.blocks:
        kind = placed.block.kind
        if placed.oversized and kind != "table":
            yield Oversized(placed, plan.budget, LINES if kind == "code" else PROSE)
        elif by_sentence and kind not in ("heading", "table", "code"):
            yield Oversized(placed, plan.budget, SENTENCES)


def _before(plans: Sequence[_Plan], plan: _Plan) -> Placed | None:
    """The last block of the run before, if both are parts of one section."""
    if not plan.number or plan.run.blocks[0].block.kind == "heading":
        return None
    last = plans[plan.number - 1].run.blocks[-1]
    return last if last.block.heading_path == plan.run.heading_path else None


def _table(item: Item, table: Placed, budget: int) -> Table:
    intro = "" if item.intro is None else lead(item.intro.block.text)
    return Table(table, budget, intro, item.start, item.lead_tokens)


def _drafts(
    document: Chunkable, plan: _Plan, group: Sequence[Item], pieces: Mapping[int, list[Piece]]
) -> Iterator[Draft]:
    """Drafts of one run: packed items, and between them the tables that were cut by rows.

    A short rest after such a table goes with its last piece, rather than being a shred.
    """
    tail: Piece | None = None
    for cut, stretch in groupby(group, key=lambda item: item.table is not None):
        found = list(stretch)
        if cut:
            *whole, tail = [piece for item in found for piece in pieces[item.start]]
            yield from (_draft(plan, p.start, p.end, p.extra, p.rest) for p in whole)
            continue
        if tail is not None and sum(item.tokens for item in found) <= tail.room:
            tail = replace(tail, end=found[-1].end)
            found = []
        if tail is not None:
            yield _draft(plan, tail.start, tail.end, tail.extra, tail.rest)
            tail = None
        yield from _packed(document, plan, found)
    if tail is not None:
        yield _draft(plan, tail.start, tail.end, tail.extra, tail.rest)


def _packed(document: Chunkable, plan: _Plan, waiting: Sequence[Item]) -> Iterator[Draft]:
    sizes = [item.tokens for item in waiting]
    spans = ((item.start, item.end) for item in waiting)
    preferred = anchors(document.body, spans, sizes, plan.budget)
    preferred |= {index for index, item in enumerate(waiting) if item.opens}
    starts = pack(sizes, plan.budget, preferred)
    for first, last in pairwise([*starts, len(waiting)]):
        start, end = waiting[first].start, waiting[last - 1].end
        intro = waiting[first].intro
        held = intro is None or intro.start >= start
        yield _draft(plan, start, end, "" if intro is None or held else lead(intro.block.text))


def _draft(plan: _Plan, start: int, end: int, extra: str = "", rest: str = "") -> Draft:
    run = plan.run
    return Draft(
        start=start,
        end=end,
        run=plan.number,
        heading_path=run.heading_path,
        page=run.page,
        locator=run.locator,
        page_start=run.page_start,
        crumbs=plan.crumbs,
        extra=extra,
        rest=rest,
    )
