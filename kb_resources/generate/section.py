"""A document's sections as what a model is shown of them: own text, and what lies below.

Belongs here: nesting by headings, and dividing what is too long for one request. What does not:
asking. Ids are those of `retrieve.outline`; a part of a section that had to be divided adds `~n`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kb_resources.model import Block, ParsedDocument, content_hash

LONGEST_REQUEST = 24_000
"""Code points of one request: some 8,000 tokens, which every current model reads."""
SUMMARY_CHARS = 800
"""Code points of a summary at most."""


@dataclass(frozen=True, slots=True)
class Text:
    """Blocks that follow each other directly under a heading, heading line included."""

    text: str
    byte_start: int
    byte_end: int

    @property
    def shown(self) -> int:
        """Code points that it takes in a request."""
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Section:
    """A section, or a part of one that had to be divided.

    Attributes:
        node_id: unique in the document.
        title: its heading; the root's is the document's title, a part has none.
        byte_start: in the body, UTF-8 bytes; its heading is inside.
        byte_end: exclusive.
        parts: texts and sections inside, in reading order.
        chars: code points of all text in it.
    """

    node_id: str
    title: str
    byte_start: int
    byte_end: int
    parts: tuple[Text | Section, ...]
    chars: int

    @property
    def shown(self) -> int:
        """Code points that it takes in a request about what is above it."""
        return min(self.chars, SUMMARY_CHARS)

    def bottom_up(self, depth: int = 0) -> Iterator[tuple[Section, int]]:
        """It and all sections inside with their depth, those below before those above."""
        for part in self.parts:
            if isinstance(part, Section):
                yield from part.bottom_up(depth + 1)
        yield self, depth


@dataclass(slots=True)
class _Open:
    """A section that still grows."""

    node_id: str
    title: str
    level: int
    parts: list[Text | Section] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def gather(self) -> None:
        """Make texts of the blocks so far."""
        for group in _packed(self.blocks):
            text = "\n\n".join(block.text for block in group)
            self.parts.append(Text(text, group[0].byte_start, group[-1].byte_end))
        self.blocks.clear()

    def closed(self) -> Section:
        """What it came to; divided where a request could not hold it."""
        self.gather()
        parts: list[Text | Section] = self.parts
        rounds = 0
        while sum(part.shown for part in parts) > LONGEST_REQUEST:
            rounds += 1
            parts = [
                _section(f"{self.node_id}~{rounds}.{nth}", "", group)
                for nth, group in enumerate(_grouped(parts), 1)
            ]
        return _section(self.node_id, self.title, parts)


def sections(document: ParsedDocument) -> Section:
    """The root of a document's sections, whose range is the body's."""
    times: Counter[tuple[str, ...]] = Counter()
    stack = [_Open(_id((), 0), document.title, 0)]
    for block in document.blocks:
        if block.kind == "heading":
            level = block.level or 1
            while stack[-1].level >= level:
                _close(stack)
            stack[-1].gather()
            path = block.heading_path
            stack.append(_Open(_id(path, times[path]), path[-1] if path else "", level))
            times[path] += 1
        stack[-1].blocks.append(block)
    while len(stack) > 1:
        _close(stack)
    return stack[0].closed()


def _close(stack: list[_Open]) -> None:
    done = stack.pop().closed()
    stack[-1].parts.append(done)


def _id(path: tuple[str, ...], nth: int) -> str:
    made = content_hash("\x1f".join(path))[:8]
    return f"{made}-{nth + 1}" if nth else made


def _section(node_id: str, title: str, parts: Sequence[Text | Section]) -> Section:
    chars = sum(len(p.text) if isinstance(p, Text) else p.chars for p in parts)
    start, end = (parts[0].byte_start, parts[-1].byte_end) if parts else (0, 0)
    return Section(node_id, title, start, end, tuple(parts), chars)


def _packed(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks in groups that a request can hold; one longer than that stands alone."""
    group: list[Block] = []
    chars = 0
    for block in blocks:
        if group and chars + len(block.text) > LONGEST_REQUEST:
            yield group
            group, chars = [], 0
        group.append(block)
        chars += len(block.text) + 2
    if group:
        yield group


def _grouped(parts: Sequence[Text | Section]) -> Iterator[list[Text | Section]]:
    group: list[Text | Section] = []
    chars = 0
    for part in parts:
        if group and chars + part.shown > LONGEST_REQUEST:
            yield group
            group, chars = [], 0
        group.append(part)
        chars += part.shown
    if group:
        yield group
