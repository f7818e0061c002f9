"""Which words of a text a question's lexemes stand for, by the analyzer that indexed it.

Belongs here: spans in the text as it is stored. What does not: choosing lexemes (`analyzer`).
The analyzer works on cleaned text (NFKC, no invisible characters), whose offsets are others, so
each stretch between spaces is cleaned alone and keeps a map back to where it came from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from functools import lru_cache

from kb_resources.lexical.analyzer import lexeme_number, passage_lexemes, references
from kb_resources.lexical.fold import visible
from kb_resources.lexical.stems import analysed_as
from kb_resources.lexical.tokens import run_matches, runs

_STRETCH = re.compile(r"\S+")
_LONGEST_MAPPED = 2_000


_Run = tuple[str, int, int]
"""A word of the analyzer and where it stands. A passage has hundreds: plain tuples are quickest."""


def highlights(text: str, language: str, lexemes: Collection[int]) -> tuple[tuple[int, int], ...]:
    """Spans of a passage that its question asked for, inflected forms included.

    Args:
        text: the passage as stored.
        language: ISO 639-1 code it was indexed under.
        lexemes: numbers as `analyze_query` gives them.

    Returns:
        Half-open `(start, end)` in code points of `text`, ordered and disjoint; a number with
        the word it belongs to (`§ 15`) is one span.
    """
    language = analysed_as(language)
    wanted = frozenset(lexemes)
    found = _runs(text)
    words = {run[0] for run in found}
    asked_for = {word for word in words if not wanted.isdisjoint(passage_lexemes(word, language))}
    numbers = {word for word in words if word[0].isdigit()}
    if not asked_for and not numbers:
        return ()
    spans: list[tuple[int, int]] = []
    before, before_start = "", 0
    for word, start, end in found:
        if before and word in numbers and not wanted.isdisjoint(_referred(before, word)):
            spans.append((before_start, end))
        elif word in asked_for:
            spans.append((start, end))
        before, before_start = word, start
    return _merged(spans)


def surfaces(text: str, language: str) -> dict[int, tuple[str, ...]]:
    """Lexeme number to the words of a text it stands for, as they are spelt there."""
    language = analysed_as(language)
    found: dict[int, dict[str, None]] = {}
    before, before_start = "", 0
    for word, start, end in _runs(text):
        for number in passage_lexemes(word, language):
            found.setdefault(number, {})[text[start:end]] = None
        if before and word[0].isdigit():
            for number in _referred(before, word):
                found.setdefault(number, {})[text[before_start:end]] = None
        before, before_start = word, start
    return {number: tuple(words) for number, words in found.items()}


def _referred(before: str, word: str) -> list[int]:
    """Lexemes of a number together with what stands before it; only a digit can begin one."""
    return [lexeme_number(name) for name in references((before, word))]


def _runs(text: str) -> list[_Run]:
    """The analyzer's runs, each with its place in the text."""
    if visible(text) == text:
        return _placed(text)
    return [
        (word, stretch.start() + start, stretch.start() + end)
        for stretch in _STRETCH.finditer(text)
        for word, start, end in _stretch_runs(stretch.group())
    ]


def _placed(text: str) -> list[_Run]:
    """Runs of a clean text. What lies between two begins none, so each is the next of its like."""
    found = []
    at = 0
    for word in runs(text):
        start = text.find(word, at)
        at = start + len(word)
        found.append((word, start, at))
    return found


@lru_cache(maxsize=65_536)
def _stretch_runs(raw: str) -> tuple[_Run, ...]:
    """Runs of what stands between two spaces, with their places in it."""
    cleaned = visible(raw)
    if cleaned == raw:
        return tuple(_placed(raw))
    reached, size = _map(raw), len(raw)
    found = []
    for match in run_matches(cleaned):
        start = bisect_right(reached, match.start()) - 1
        end = bisect_right(reached, match.end()) - 1
        found.append((match.group(), max(start, 0), min(end, size)))
    return tuple(found)


def _map(raw: str) -> list[int]:
    """For each prefix of a stretch, the length of its cleaned form; never falls.

    Cleaning each prefix is quadratic; beyond a length no word has, positions are taken as equal.
    """
    if len(raw) > _LONGEST_MAPPED:
        return list(range(len(raw) + 1))
    lengths = [0]
    for size in range(1, len(raw) + 1):
        lengths.append(max(lengths[-1], len(visible(raw[:size]))))
    return lengths


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return tuple(merged)
