"""A parsed document as a tree of sections, blocks and, on demand, sentences.

Belongs here: nesting and stable node ids; offsets are those of the body. The same bytes give the
same ids, and an edited paragraph or item changes no id but its own: an id hashes the parent's, the
kind, and the title or text with its occurrence under that parent; lists are known by their number.
Sentences end where https://www.unicode.org/reports/tr29/#Sentence_Boundaries lets them, minus
common abbreviations.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kb_resources.model import Block, BlockKind, ParsedDocument, content_hash

NodeKind = BlockKind | Literal["root", "section", "list", "sentence"]

_SENTENCE_END = re.compile(r"[.!?…]+[\"'»“”’)\]]*\s+(?=[\"'«„“‘(\[]*[^\W\d_a-zа-яђјљњћџѓќѕ])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:[^\W\d_]|Art|Nr|No|Abs|Dr|Prof|Mr|Mrs|Ms|St|Fig|Sec|vgl|bzw|usw|etc|npr|itd|tzv|čl|чл"
    r"|ст|др|г|ул|им|тзв|бр|br|str|стр))\.$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Node:
    """One node.

    Attributes:
        kind: root, section, list, sentence or a block's kind.
        id: 16 hex digits, unique in the document.
        byte_start: in the body, UTF-8 bytes.
        byte_end: exclusive; children lie inside.
        char_start: in the body, code points.
        char_end: exclusive.
        title: heading text of a section, the document's title for the root, else "".
        children: in document order.
    """

    kind: NodeKind
    id: str
    byte_start: int
    byte_end: int
    char_start: int
    char_end: int
    title: str = ""
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """This node and everything below, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def to_json(self) -> dict[str, Any]:
        """Plain data from which `from_json` makes the same tree."""
        return {
            "kind": self.kind,
            "id": self.id,
            "bytes": [self.byte_start, self.byte_end],
            "chars": [self.char_start, self.char_end],
            "title": self.title,
            "children": [child.to_json() for child in self.children],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Node:
        """Inverse of `to_json`."""
        (byte_start, byte_end), (char_start, char_end) = value["bytes"], value["chars"]
        children = tuple(map(cls.from_json, value["children"]))
        return cls(
            kind=value["kind"],
            id=value["id"],
            byte_start=byte_start,
            byte_end=byte_end,
            char_start=char_start,
            char_end=char_end,
            title=value["title"],
            children=children,
        )


@dataclass(slots=True)
class _Open:
    """A section or list that still grows."""

    kind: NodeKind
    level: int
    id: str
    title: str
    children: list[Node] = field(default_factory=list)


def build_tree(document: ParsedDocument, *, sentences: bool = False) -> Node:
    """The tree of a document.

    Args:
        document: as parsed.
        sentences: give paragraphs, list items, footnotes and captions their sentences as children.

    Returns:
        The root, whose range is the whole body.
    """
    builder = _Builder(document, sentences=sentences)
    for block, char_start in _absolute(document.blocks):
        builder.add(block, char_start)
    return builder.finish()


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Half-open character ranges of the sentences of a text, without the spaces between."""
    ranges, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        end = match.start() + len(match[0].rstrip())
        if _ABBREVIATION.search(text[max(start, end - 12) : end]):
            continue
        ranges.append((start, end))
        start = match.end()
    if text[start:].strip():
        ranges.append((start, start + len(text[start:].rstrip())))
    return ranges


class _Builder:
    def __init__(self, document: ParsedDocument, *, sentences: bool) -> None:
        self._document = document
        self._sentences = sentences
        self._seen: Counter[str] = Counter()
        self._stack = [_Open("root", 0, self._id("root", "", ""), document.title)]

    def add(self, block: Block, char_start: int) -> None:
        if block.kind == "heading":
            level = block.level or 1
            self._close(lambda top: top.level >= level or top.kind == "list")
            title = block.heading_path[-1] if block.heading_path else ""
            self._open("section", level, title)
        elif block.kind == "list_item":
            if self._stack[-1].kind != "list":
                self._open("list", self._stack[-1].level, "")
        else:
            self._close(lambda top: top.kind == "list")
        self._stack[-1].children.append(self._leaf(block, char_start))

    def finish(self) -> Node:
        self._close(lambda top: top.kind != "root")
        root = self._stack[0]
        body = self._document.body
        return Node(
            "root",
            root.id,
            *(0, len(body.encode()), 0, len(body)),
            title=root.title,
            children=tuple(root.children),
        )

    def _open(self, kind: NodeKind, level: int, title: str) -> None:
        identity = self._id(kind, self._stack[-1].id, title)
        self._stack.append(_Open(kind, level, identity, title))

    def _close(self, should: Any) -> None:
        while len(self._stack) > 1 and should(self._stack[-1]):
            done = self._stack.pop()
            first, last = done.children[0], done.children[-1]
            node = Node(
                done.kind,
                done.id,
                *(first.byte_start, last.byte_end, first.char_start, last.char_end),
                title=done.title,
                children=tuple(done.children),
            )
            self._stack[-1].children.append(node)

    def _leaf(self, block: Block, char_start: int) -> Node:
        identity = self._id(block.kind, self._stack[-1].id, content_hash(block.text))
        children: tuple[Node, ...] = ()
        if self._sentences and block.kind in {"paragraph", "list_item", "footnote", "caption"}:
            children = tuple(self._sentence_nodes(block, char_start, identity))
        return Node(
            block.kind,
            identity,
            *(block.byte_start, block.byte_end, char_start, char_start + len(block.text)),
            children=children,
        )

    def _sentence_nodes(self, block: Block, char_start: int, parent: str) -> Iterator[Node]:
        for start, end in split_sentences(block.text):
            byte_start = block.byte_start + len(block.text[:start].encode())
            text = block.text[start:end]
            yield Node(
                "sentence",
                self._id("sentence", parent, content_hash(text)),
                *(byte_start, byte_start + len(text.encode())),
                *(char_start + start, char_start + end),
            )

    def _id(self, kind: str, parent: str, text: str) -> str:
        key = "\x1f".join((kind, parent, text))
        self._seen[key] += 1
        return hashlib.sha256(f"{key}\x1e{self._seen[key]}".encode()).hexdigest()[:16]


def _absolute(blocks: Sequence[Block]) -> Iterator[tuple[Block, int]]:
    """Blocks with their start in the body in code points."""
    at = 0
    for block in blocks:
        yield block, at
        at += len(block.text) + 2
