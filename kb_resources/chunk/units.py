"""From a run's blocks to the items that packing moves: what stays together, what is cut.

Belongs here: which blocks introduce which, lists as wholes, over-long blocks as pieces. Not here:
tables too long for one chunk (`tables`) and filling chunks (`packing`).
The kinds are docling's item labels, https://docling-project.github.io/docling/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kb_resources.chunk.layout import Placed
from kb_resources.model.parsed import BlockKind

_SHORT_INTRO_SHARE = 6


class Item(NamedTuple):
    """What packing moves as one; a tuple, because there are so many.

    Attributes:
        start: first code point in the body.
        end: exclusive.
        tokens: estimated as the sum of its parts.
        opens: whether a chunk rather begins here.
        intro: the block that introduces this table or list, or None.
        table: the table if this is one that has to be cut by rows, else None.
        lead_tokens: of what stands before the table in this item; 0 for other items.
    """

    start: int
    end: int
    tokens: int
    opens: bool = False
    intro: Placed | None = None
    table: Placed | None = None
    lead_tokens: int = 0


def give_room(blocks: Sequence[Placed], budget: int) -> None:
    """Set the room of a run's counted blocks: the budget less what headings above them take.

    A heading belongs to the first chunk of what it heads. So the block below it is cut a little
    earlier, instead of leaving the heading alone, as long as that costs less than half a chunk.
    """
    above = 0
    for placed in blocks:
        placed.room = budget - above if 2 * above <= budget else budget
        above = above + placed.tokens if placed.block.kind == "heading" else 0


def items(blocks: Sequence[Placed], budget: int, before: Placed | None) -> list[Item]:
    """Items of one run in body order; together they are its blocks.

    Kept in one item where they fit: headings and introducing paragraphs with what follows, a list,
    a list's entry with the entries nested in it, each block.

    Args:
        blocks: the run's blocks.
        budget: tokens of a chunk's text.
        before: the block before the run if it is of the same section, on an earlier page.
    """
    kinds = [placed.block.kind for placed in blocks]
    result: list[Item] = []
    leads: list[Placed] = []
    position, count = 0, len(blocks)
    while position < count:
        placed, kind = blocks[position], kinds[position]
        stop = position + 1
        following = kinds[stop] if stop < count else None
        plain = kind == "paragraph" and following in ("paragraph", None)
        if plain and not leads and not placed.oversized:
            result.append(Item(placed.start, placed.end, placed.tokens))
        elif following and _introduces(placed, kind, following, budget):
            leads.append(placed)
        else:
            while kind == "list_item" and stop < count and kinds[stop] == kind:
                stop += 1
            last = blocks[position - 1] if position else before
            intro = _intro(last, kind)
            content = list(_content(blocks[position:stop], intro))
            result += _with_leads(leads, content, budget)
            leads = []
        position = stop
    return result


def sentence_items(blocks: Sequence[Placed], budget: int) -> list[Item]:
    """Items of one run, sentences where the blocks were cut into such, blocks elsewhere."""
    result: list[Item] = []
    leads: list[Placed] = []
    for placed in blocks:
        heading = placed.block.kind == "heading" and not placed.oversized
        if heading and placed is not blocks[-1]:
            leads.append(placed)
            continue
        result += _with_leads(leads, list(_pieces(placed, None, opens=False)), budget)
        leads = []
    return result


def _introduces(placed: Placed, kind: BlockKind, following: BlockKind, budget: int) -> bool:
    """Whether a block should share a chunk with the one after it."""
    if 2 * placed.tokens > budget or placed.oversized:
        return False
    if kind == "heading":
        return True
    if kind == "caption":
        return following in ("table", "code", "figure_text")
    if kind == "paragraph" and following in ("table", "list_item", "code"):
        short = following == "table" and _SHORT_INTRO_SHARE * placed.tokens <= budget
        return short or _ends_open(placed.block.text)
    return False


def _ends_open(text: str) -> bool:
    """Whether a paragraph ends with a colon, emphasis marks aside."""
    return text.rstrip(" *_").endswith(":")


def _intro(last: Placed | None, kind: BlockKind) -> Placed | None:
    """The block whose words belong to each piece of a table or list, if there is one."""
    if last is None or kind not in ("table", "list_item"):
        return None
    if kind == "table":
        return last if last.block.kind in ("caption", "paragraph") else None
    return last if last.block.kind == "paragraph" and _ends_open(last.block.text) else None


def _content(blocks: Sequence[Placed], intro: Placed | None) -> Iterator[Item]:
    """One block or one list as items."""
    whole = _merge(blocks, intro)
    if whole.tokens <= blocks[0].room:
        yield whole
        return
    for entry in _entries(blocks):
        if len(entry) > 1 and sum(placed.tokens for placed in entry) <= entry[0].room:
            yield _merge(entry, intro)
        else:
            for placed in entry:
                yield from _pieces(placed, intro, opens=True)


def _entries(blocks: Sequence[Placed]) -> Iterable[list[Placed]]:
    """List entries of the top level, each with the indented ones below it."""
    entries: list[list[Placed]] = []
    for placed in blocks:
        if entries and placed.block.text[:1].isspace():
            entries[-1].append(placed)
        else:
            entries.append([placed])
    return entries


def _pieces(placed: Placed, intro: Placed | None, *, opens: bool) -> Iterator[Item]:
    if placed.oversized and placed.block.kind == "table":
        yield Item(placed.start, placed.end, placed.tokens, intro=intro, table=placed)
        return
    for leaf in placed.leaves():
        first = opens and bool(placed.parts) and leaf.start == placed.start
        yield Item(leaf.start, leaf.end, leaf.tokens, opens=first, intro=intro)


def _merge(blocks: Sequence[Placed], intro: Placed | None) -> Item:
    tokens = sum([placed.tokens for placed in blocks])
    return Item(blocks[0].start, blocks[-1].end, tokens, intro=intro)


def _with_leads(leads: Sequence[Placed], content: list[Item], budget: int) -> list[Item]:
    """Put what introduces the content into its first item, or in front of it if it does not fit."""
    if not leads:
        return content
    lead, first = _merge(leads, None), content[0]
    if first.table is not None and 2 * lead.tokens <= budget:
        return [first._replace(start=lead.start, lead_tokens=lead.tokens)]
    if first.table is None and lead.tokens + first.tokens <= budget:
        whole = first._replace(start=lead.start, tokens=lead.tokens + first.tokens, opens=True)
        return [whole, *content[1:]]
    if lead.tokens <= budget:
        return [lead, *content]
    return [*(_merge([placed], None) for placed in leads), *content]
