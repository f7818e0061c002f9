"""Edits of a text, and where a piece of edited text stood in the original.

Belongs here: applying edits and mapping spans of the result back. Does not belong here: deciding
what to edit, which `decoders` do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Edit(NamedTuple):
    """A stretch of a text and what it reads as.

    Attributes:
        start: in the text, code points.
        end: exclusive.
        text: the replacement, possibly empty.
    """

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """A text after edits, with the way back.

    Attributes:
        text: what it reads as.
        starts: where each piece starts in `text`, ascending; pieces alternate between kept and
            edited stretches.
        origins: span of each piece in the original, code points.
        edited: whether the piece was edited.
    """

    text: str
    starts: Sequence[int]
    origins: Sequence[tuple[int, int]]
    edited: Sequence[bool]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The original's span for a span of `text`; an edited piece counts whole."""
        first = max(0, bisect_right(self.starts, start) - 1)
        last = max(first, bisect_left(self.starts, end) - 1)
        left, right = self.origins[first][0], self.origins[last][1]
        if not self.edited[first]:
            left += start - self.starts[first]
        if not self.edited[last]:
            right = self.origins[last][0] + end - self.starts[last]
        return left, right

    def touched(self, start: int, end: int) -> bool:
        """Whether an edit lies within a span of `text` or at a point inside it."""
        first = max(0, bisect_right(self.starts, start) - 1)
        last = bisect_left(self.starts, end)
        return any(self.edited[first:last])


def apply(text: str, edits: Sequence[Edit], start: int = 0, end: int | None = None) -> View:
    """Apply ascending, disjoint edits to a slice of a text.

    Args:
        text: the original.
        edits: within the slice.
        start: of the slice, code points.
        end: exclusive; the text's end when None.
    """
    stop = len(text) if end is None else end
    parts: list[str] = []
    starts: list[int] = []
    origins: list[tuple[int, int]] = []
    edited: list[bool] = []
    length, position = 0, start
    for edit_start, edit_end, replacement in edits:
        if edit_start > position or not parts:
            parts.append(text[position:edit_start])
            starts.append(length)
            origins.append((position, edit_start))
            edited.append(False)
            length += edit_start - position
        parts.append(replacement)
        starts.append(length)
        origins.append((edit_start, edit_end))
        edited.append(True)
        length += len(replacement)
        position = edit_end
    parts.append(text[position:stop])
    starts.append(length)
    origins.append((position, stop))
    edited.append(False)
    return View("".join(parts), starts, origins, edited)
