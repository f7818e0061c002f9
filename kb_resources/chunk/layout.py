"""From blocks to runs: stretches of the body that a chunk may not leave.

Belongs here: placing blocks in the body and finding pages', locators' and sections' borders.
Not here: sizes. The rules are those of the octabits knowledge package (requirements O-02, O-03).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kb_resources.chunk.splitting import Segment
from kb_resources.errors import IntegrityError
from kb_resources.model import Block, PageSpan


class Chunkable(Protocol):
    """What the chunker reads of a parsed document; `model.ParsedDocument` is one."""

    @property
    def title(self) -> str:
        """Not empty."""
        ...

    @property
    def body(self) -> str:
        """The canonical Markdown."""
        ...

    @property
    def blocks(self) -> tuple[Block, ...]:
        """In reading order."""
        ...

    @property
    def pages(self) -> tuple[PageSpan, ...]:
        """Empty where the format has none."""
        ...


@dataclass(slots=True)
class Placed(Segment):
    """A block with its place in the body and, once counted, its size.

    Attributes:
        block: the block.
        room: tokens it may take in a chunk that also holds the headings right above it.
    """

    block: Block = field(kw_only=True)
    room: int = field(default=0, kw_only=True)

    @property
    def oversized(self) -> bool:
        """Whether it has to be cut."""
        return self.tokens > self.room


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive blocks that may share a chunk.

    Attributes:
        blocks: at least one, in body order.
        page: of all of them.
        locator: of all of them.
        page_start: where the page text begins in the body, code points; 0 without pages.
    """

    blocks: tuple[Placed, ...]
    page: int | None
    locator: str | None
    page_start: int

    @property
    def heading_path(self) -> tuple[str, ...]:
        """Headings above the run's content."""
        return self.blocks[-1].block.heading_path


def place(document: Chunkable) -> list[Placed]:
    """Blocks with body offsets.

    Raises:
        IntegrityError: a block does not stand where its character span says, or blocks are out of
            order.
    """
    page_starts = {span.page: span.char_start for span in document.pages}
    body = document.body
    placed = []
    previous_end = 0
    for index, block in enumerate(document.blocks):
        offset = page_starts.get(block.page, 0) if block.page is not None else 0
        start, end = offset + block.char_start, offset + block.char_end
        text = block.text
        if (
            start < previous_end
            or end - start != len(text)
            or body[start : start + 1] != text[:1]
            or body[end - 1 : end] != text[-1:]
        ):
            raise IntegrityError(
                f"Block {index} does not stand in the body where its spans say.",
                next_step="Parse the document again.",
            )
        previous_end = end
        placed.append(Placed(start, end, block=block))
    return placed


def runs(
    placed: Iterable[Placed], pages: Iterable[PageSpan], *, sections: bool = True
) -> list[Run]:
    """Runs in body order; together they hold every block.

    A run ends where the page or the locator changes and, with `sections`, where a section does. A
    heading opens its section's run. A heading without content of its own opens the run of the
    first section below it instead, so that no passage is a chapter title alone; it stays alone
    where a page or locator border parts the two.

    Args:
        placed: all blocks, in body order.
        pages: of the document.
        sections: False to let runs go on over headings.
    """
    page_starts = {span.page: span.char_start for span in pages}
    found: list[Run] = []
    current: list[Placed] = []

    def close() -> None:
        if current:
            block = current[0].block
            start = page_starts.get(block.page, 0) if block.page is not None else 0
            found.append(Run(tuple(current), block.page, block.locator, start))
            current.clear()

    for each in placed:
        if current and _parted(current, each.block, sections=sections):
            close()
        current.append(each)
    close()
    return found


def _parted(current: Sequence[Placed], block: Block, *, sections: bool) -> bool:
    """Whether a border lies between the run so far and the next block."""
    last = current[-1].block
    if block.page != last.page or block.locator != last.locator:
        return True
    if not sections:
        return False
    if block.kind != "heading":
        return block.heading_path != last.heading_path
    depth = len(last.heading_path)
    below = len(block.heading_path) > depth and block.heading_path[:depth] == last.heading_path
    return not (below and all(placed.block.kind == "heading" for placed in current))
