"""A prefix tree over sorted strings that grows where it is walked.

Belongs here: finding the entries that begin a text. What does not: what they mean (`unigram`).
A full tree of 250,000 pieces costs hundreds of megabytes and a second to build; most programs
walk a few thousandths of it. Ranges of a sorted list stand for subtrees (Bentley and Sedgewick
1997, "Fast Algorithms for Sorting and Searching Strings").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

_AFTER_ALL = "\U0010ffff"


class Node:
    """The entries with one prefix.

    Attributes:
        low: position of the first.
        high: position after the last.
        at: position of the entry that equals the prefix, or -1.
        children: the nodes one character further, as far as they were asked for; None for no entry.
    """

    __slots__ = ("at", "children", "high", "low")

    def __init__(self, low: int, high: int, at: int) -> None:
        """A node without children."""
        self.low = low
        self.high = high
        self.at = at
        self.children: dict[str, Node | None] = {}


class PrefixTree:
    """The tree. Threads may share it: at worst two make the same node."""

    def __init__(self, entries: Sequence[str], *, most_nodes: int = 150_000) -> None:
        """Start with the root alone.

        Args:
            entries: sorted by code point, none of them twice.
            most_nodes: the tree starts again when it has grown to this.
        """
        self._entries = entries
        self._most = most_nodes
        self._grown = 0
        self.root = Node(0, len(entries), -1)

    def grow(self, node: Node, prefix: str) -> Node | None:
        """Make the child of `node` that stands for `prefix`; None where no entry begins so."""
        entries = self._entries
        low = bisect_left(entries, prefix, node.low, node.high)
        child = None
        if low < node.high and entries[low].startswith(prefix):
            high = bisect_left(entries, prefix + _AFTER_ALL, low, node.high)
            child = Node(low, high, low if entries[low] == prefix else -1)
        node.children[prefix[-1]] = child
        self._grown += 1
        if self._grown >= self._most:
            self._grown = 0
            self.root = Node(0, len(entries), -1)
        return child
