"""Stretches of a mixed text, each with its language.

Belongs here: cutting at paragraph ends and joining neighbours that agree.
Does not belong here: telling the language of one stretch, which the caller passes in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kb_resources.language.detection import UNDETERMINED, Segment

# A stretch shorter than this follows its neighbour: single lines are too short to be sure.
MIN_SEGMENT_CHARS = 160
MAX_SEGMENTS = 200
# A stretch in another language than the whole has to be sure of it.
OTHER_CONFIDENCE = 0.8
# What is read of one stretch.
MAX_PIECE_CHARS = 1_500
_BREAK = re.compile(r"\n\s*\n|(?<=[.!?…])\s+(?=\S)|\n")


def segment(
    text: str, whole: str, label_of: Callable[[str], tuple[str, float]]
) -> tuple[Segment, ...]:
    """Cut a text into stretches of one language.

    Args:
        text: the text that `whole` is the language of.
        whole: label for stretches that are too short or unclear by themselves.
        label_of: language of one stretch, and how sure it is.

    Returns:
        Stretches that cover the text in order, neighbours of equal label joined.
    """
    if not text:
        return ()
    if len(text) < 2 * MIN_SEGMENT_CHARS:
        return (Segment(whole, 0, len(text)),)
    joined: list[Segment] = []
    for start, end in _pieces(text):
        label, confidence = label_of(text[start : min(end, start + MAX_PIECE_CHARS)])
        if label == UNDETERMINED or (label != whole and confidence < OTHER_CONFIDENCE):
            label = joined[-1].label if joined else whole
        if joined and joined[-1].label == label:
            joined[-1] = Segment(label, joined[-1].char_start, end)
        else:
            joined.append(Segment(label, start, end))
    return tuple(joined)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Spans of at least `MIN_SEGMENT_CHARS` that end at a break; at most `MAX_SEGMENTS`."""
    least = max(MIN_SEGMENT_CHARS, len(text) // MAX_SEGMENTS)
    start = 0
    while start < len(text):
        end = _BREAK.search(text, start + least, start + 4 * least)
        stop = end.end() if end else min(start + 4 * least, len(text))
        if len(text) - stop < least:
            stop = len(text)
        yield start, stop
        start = stop
