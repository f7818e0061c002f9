"""Ruled lines of a page: pieces joined, and those that touch gathered into frames.

Belongs here: geometry of rules only. What stands inside a frame is `grid`'s question. Producers
draw a table's border cell by cell, doubled, or as thin boxes; all of that becomes single lines.
Compare the "lattice" method of https://github.com/camelot-dev/camelot (MIT).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb_resources.parse.pdf.ink import Box, enclose

_SAME_LINE = 2.5
_TOUCH = 3.0
_REACH = 6.0  # some typesetters leave air between a rule and the walls above and below it
_MIN_HORIZONTAL = 10.0
_MIN_VERTICAL = 5.0
_MAX_PAIRS = 200_000


@dataclass(frozen=True, slots=True)
class Ruling:
    """Straight rules of a page or a part of it, flow frame."""

    horizontal: tuple[Box, ...]
    vertical: tuple[Box, ...]

    @property
    def box(self) -> Box:
        """Rectangle around all of them; there must be at least one."""
        return enclose((*self.horizontal, *self.vertical))


def ruling_of(rules: Sequence[Box]) -> Ruling:
    """Sort rules by direction and join pieces of one line."""
    flat = [rule for rule in rules if rule.height <= 3 < rule.width]
    upright = [rule for rule in rules if rule.width <= 3 < rule.height]
    horizontal = _join([(r.middle, r.left, r.right) for r in flat])
    vertical = _join([((r.left + r.right) / 2, r.top, r.bottom) for r in upright])
    return Ruling(
        tuple(Box(s, at, e, at) for at, s, e in horizontal if e - s >= _MIN_HORIZONTAL),
        tuple(Box(at, s, at, e) for at, s, e in vertical if e - s >= _MIN_VERTICAL),
    )


def _join(pieces: list[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Pieces (position, start, end) of the same straight line as one."""
    lanes: list[list[tuple[float, float, float]]] = []
    for piece in sorted(pieces):
        if lanes and piece[0] - lanes[-1][0][0] <= _SAME_LINE:
            lanes[-1].append(piece)
        else:
            lanes.append([piece])
    joined: list[tuple[float, float, float]] = []
    for lane in lanes:
        at = sum(piece[0] for piece in lane) / len(lane)
        start, end = None, 0.0
        for _, left, right in sorted(lane, key=lambda piece: piece[1]):
            if start is None:
                start, end = left, right
            elif left <= end + _TOUCH:
                end = max(end, right)
            else:
                joined.append((at, start, end))
                start, end = left, right
        if start is not None:
            joined.append((at, start, end))
    return joined


def frames_of(ruling: Ruling) -> list[Ruling]:
    """Groups of rules that touch each other, with at least two of each direction in sum."""
    flat, upright = ruling.horizontal, ruling.vertical
    if not flat or not upright or len(flat) * len(upright) > _MAX_PAIRS:
        return []
    group = list(range(len(flat) + len(upright)))

    def root(index: int) -> int:
        while group[index] != index:
            group[index] = group[group[index]]
            index = group[index]
        return index

    for i, line in enumerate(flat):
        for j, wall in enumerate(upright, start=len(flat)):
            if (
                line.left - _TOUCH <= wall.left <= line.right + _TOUCH
                and wall.top - _REACH <= line.top <= wall.bottom + _REACH
            ):
                group[root(i)] = root(j)
    members: dict[int, tuple[list[Box], list[Box]]] = {}
    for index in range(len(group)):
        lines, walls = members.setdefault(root(index), ([], []))
        if index < len(flat):
            lines.append(flat[index])
        else:
            walls.append(upright[index - len(flat)])
    return [
        Ruling(tuple(lines), tuple(walls))
        for lines, walls in members.values()
        if len(lines) >= 2 and walls
    ]


def stacks_of(ruling: Ruling) -> list[tuple[Box, ...]]:
    """Horizontal rules of the same extent, from top to bottom: open tables have them."""
    stacks: list[list[Box]] = []
    for line in sorted(ruling.horizontal, key=lambda line: line.top):
        for stack in reversed(stacks):
            last = stack[-1]
            if abs(line.left - last.left) <= _TOUCH and abs(line.right - last.right) <= _TOUCH:
                stack.append(line)
                break
        else:
            stacks.append([line])
    return [tuple(stack) for stack in stacks if len(stack) >= 2]
