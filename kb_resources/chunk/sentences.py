"""Where sentences end, in the eight languages at once, with abbreviations and citations as data.

Belongs here: rules that every Latin or Cyrillic text shares; words are in `abbreviations.toml`.
The lists of all languages apply together: a wrong or changed language guess must not move a cut,
and a missed end only makes a piece longer. Linear in the text's length.
The approach (ordinary words against abbreviations, what follows the stop) is that of Kiss and
Strunk, "Unsupervised Multilingual Sentence Boundary Detection", 2006, without the learning.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final

_STOPS = r".!?…؟۔।。！？"
_CLOSERS = r"\"'”’“»«›‹)\]}*_」』）"
_TRAILING: Final = frozenset(_STOPS + _CLOSERS.replace("\\", ""))
_OPENERS = "\"'“”„‚‘’«»‹›([{*_–—-¿¡ "
# Begins with one character class, which the engine searches fast; the look-behind then sees to it
# that a run of stops is looked at once, and nothing is tried twice.
_CANDIDATE: Final = re.compile(
    rf"[{_STOPS}](?<![{_STOPS}][{_STOPS}])[{_STOPS}]*+"
    rf"(?:(?<=[。！？])[{_CLOSERS}]*+\s*+|[{_CLOSERS}]*+\s++)(?=\S)"
)
_ROMAN: Final = re.compile(r"[IVXLCDM]{1,7}(?![^\W\d_])")
_NUMBER_AHEAD: Final = re.compile(r"[\d§№#]|[IVXLCDM]+\b|\w(?!\w)")
_VOWELS: Final = frozenset("aeiouyäöüáéíóúàèìòùâêîôûåæøаеиоуыэюяёіїєъrрлlљ")
_MAX_WORD: Final = 24
_LONGEST_UNLISTED: Final = 4


@dataclass(frozen=True, slots=True)
class _Lexicon:
    never: frozenset[str]
    number: frozenset[str]
    unit: frozenset[str]
    may_end: frozenset[str]
    starters: frozenset[str]
    known: frozenset[str]
    joined_ends: frozenset[str]


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    text = resources.files(__package__).joinpath("abbreviations.toml").read_text("utf-8")
    languages = tomllib.loads(text).values()

    def merged(key: str) -> frozenset[str]:
        return frozenset(word for language in languages for word in language[key])

    classes = {key: merged(key) for key in ("never", "number", "unit", "may_end")}
    known = frozenset(word.rsplit(" ", 1)[-1] for words in classes.values() for word in words)
    # How abbreviations of several parts end: after other words nothing before them is looked at.
    parted = (word.replace(".", " ").split() for word in classes["never"] | classes["may_end"])
    joined_ends = frozenset(parts[-1] for parts in parted if len(parts) > 1)
    return _Lexicon(**classes, starters=merged("starters"), known=known, joined_ends=joined_ends)


def sentence_breaks(text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Positions between two sentences of `text[start:end]`.

    Args:
        text: any text; the part of interest is looked at as if it stood alone.
        start: where the part begins.
        end: exclusive end of the part, the text's end for None.

    Returns:
        Ascending positions, each the first character of a sentence after the first one; white
        space belongs to the sentence before it.
    """
    stop = len(text) if end is None else end
    return [
        match.end()
        for match in _CANDIDATE.finditer(text, start, stop)
        if _ends_sentence(text, match.start(), match.end(), start, stop)
    ]


def last_sentence_break(text: str, start: int, end: int, after: int) -> int | None:
    """The last of `sentence_breaks(text, start, end)` that lies beyond `after`, None without one.

    Stops are judged from the end on, so that it costs what one sentence does.
    """
    position = after
    while position > start and (text[position - 1].isspace() or text[position - 1] in _TRAILING):
        position -= 1
    for match in reversed(list(_CANDIDATE.finditer(text, position, end))):
        if match.end() <= after:
            return None
        if _ends_sentence(text, match.start(), match.end(), start, end):
            return match.end()
    return None


def _ends_sentence(text: str, at: int, after: int, start: int, end: int) -> bool:
    """Whether the stop at `at` ends a sentence, given that a next one would begin at `after`."""
    first = after
    while first < end and text[first] in _OPENERS:
        first += 1
    if first == end:
        return True
    if text[first].islower():
        return False
    if text[at] != "." or text[at + 1] in ".!?…":
        return True
    return _stop_ends_sentence(text, at, first, start, end)


def _stop_ends_sentence(text: str, at: int, first: int, start: int, end: int) -> bool:
    """The same for a single full stop before a capital, a digit or a sign at `first`."""
    words = _lexicon()
    floor = max(start, at - _MAX_WORD)
    last = text[text.rfind(" ", floor, at) + 1 or floor : at]
    ordinary = len(last) > _LONGEST_UNLISTED and last.isalpha() and not _ROMAN.fullmatch(last)
    if ordinary and last.lower() not in words.known:
        return True
    begin = at
    while begin > floor and (text[begin - 1].isalpha() or text[begin - 1] == "-"):
        begin -= 1
    if begin == at:
        if at > start and text[at - 1] == "\\":
            return False  # an escaped list mark
        if at > start and text[at - 1].isdigit():
            return _number_ends_sentence(text, at, first, start, end)
        return True
    word = text[begin:at]
    low = word.lower()
    keys = _keys(text, begin, floor, low) if low in words.joined_ends else (low,)
    if not words.may_end.isdisjoint(keys):
        return True
    if not words.never.isdisjoint(keys):
        return False
    if len(word) == 1 and (word.isupper() or _is_letter(text, first)):
        return False
    if low in words.unit and _after_number(text, begin, start):
        return not text[first].isdigit()
    if low in words.number and _NUMBER_AHEAD.match(text, first, end):
        return False
    if low in words.unit:
        return False
    if low in words.number:
        return True
    if _ROMAN.fullmatch(word) and len(word) > 1:
        return _word_at(text, first, end) in words.starters
    return not _looks_abbreviated(text, begin, start, word, text[first])


def _keys(text: str, begin: int, floor: int, low: str) -> list[str]:
    """The word, and it with the dotted parts or the short word before it: `z.b`, `и т.д`."""
    keys = [low]
    position = begin
    for _ in range(4):
        gap = position
        while gap > floor and text[gap - 1] in " \u00a0\u202f":
            gap -= 1
        dotted = gap > floor and text[gap - 1] == "."
        if not dotted and gap == position:
            break
        stop = gap - 1 if dotted else gap
        head = stop
        while head > floor and text[head - 1].isalpha():
            head -= 1
        if head == stop or stop - head > (4 if dotted else 2):
            break
        keys.append(f"{text[head:stop].lower()}{'.' if dotted else ' '}{keys[-1]}")
        position = head
        if not dotted:
            break
    return keys


def _number_ends_sentence(text: str, at: int, first: int, start: int, end: int) -> bool:
    """Whether `30.` ends a sentence, or is an ordinal, a list mark or part of a date."""
    begin = at
    while begin > start and text[begin - 1].isdigit():
        begin -= 1
    digits = at - begin
    line = begin
    while line > start and (text[line - 1].isdigit() or text[line - 1] in ".,"):
        line -= 1
    decimal = line < begin
    while line > start and text[line - 1] in " \t*_#>-":
        line -= 1
    if line == start or text[line - 1] in "\n;,:":
        return False  # the mark of a numbered item
    if text[first].isdigit():
        return digits > 2
    if not text[first].isalpha():
        return True
    return decimal or digits > 2 or _word_at(text, first, end) in _lexicon().starters


def _is_letter(text: str, first: int) -> bool:
    """Whether a lone letter with a full stop follows, as in `z. B.`."""
    return text[first : first + 1].isalpha() and text[first + 1 : first + 2] == "."


def _after_number(text: str, begin: int, start: int) -> bool:
    index = begin
    while index > start and text[index - 1] in " \u00a0\u202f":
        index -= 1
    return index > start and (text[index - 1].isdigit() or text[index - 1] in "IVXХ%")


def _word_at(text: str, first: int, end: int) -> str:
    stop = first
    limit = min(end, first + _MAX_WORD)
    while stop < limit and text[stop].isalpha():
        stop += 1
    return text[first:stop].lower()


def _looks_abbreviated(text: str, begin: int, start: int, word: str, following: str) -> bool:
    """Unknown words: no vowel in a short one, or a very short one before a number."""
    if len(word) > 4 or not word[1:].islower():
        return False
    if following.isdigit() and len(word) <= 3:
        return True
    bare = len(word) > 1 and _VOWELS.isdisjoint(word.lower())
    return bare and not _after_number(text, begin, start)
