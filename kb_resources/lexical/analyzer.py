"""Text to weighted lexemes, by the same rules for passages and questions.

Belongs here: which lexemes a text has. What does not: scoring (`bm25`, and the SQL of the search).
A lexeme is known by a number from 1 to 10^9, so that any server can store it in a `sparsevec`.
See Manning, Raghavan, Schütze, "Introduction to Information Retrieval", chapter 2.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from kb_resources.lexical.compounds import german_parts
from kb_resources.lexical.fold import fold, is_cyrillic, visible
from kb_resources.lexical.stems import (
    CYRILLIC_LANGUAGES,
    LANGUAGES,
    LATIN_LANGUAGES,
    analysed_as,
    stem,
)
from kb_resources.lexical.stopwords import is_stop_word, likely_languages
from kb_resources.lexical.tokens import AROUND_WORDS, Token, demanded, runs, spaced, token

DIMENSIONS = 1_000_000_000
MAX_TERMS = 1_000
QUERY_CHARS = 8_000
QUERY_TERMS = 400
CONTEXT_WEIGHT = 1.5
"""What one occurrence in title or headings counts; by measurement (`bench/search.py`)."""

_HAS_DIGIT = re.compile(r"\d")
_NUMBERED = re.compile(r"\d+[^\W\d_]?")


class Analysis(NamedTuple):
    """Lexemes of one passage.

    Attributes:
        terms: lexeme number to term frequency (fractions come from the context's weight).
        length: number of lexeme occurrences in the text, the length BM25 normalises by.
    """

    terms: dict[int, float]
    length: float


@lru_cache(maxsize=65_536)
def lexeme_number(lexeme: str) -> int:
    """Stable number of a lexeme, 1 to 10^9."""
    digest = hashlib.blake2b(lexeme.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % DIMENSIONS + 1


@lru_cache(maxsize=262_144)
def passage_lexemes(run: str, language: str) -> tuple[int, ...]:
    """Numbers of the lexemes that one run of a passage stands for."""
    return _run_lexemes(run, language)


def _run_lexemes(run: str, language: str) -> tuple[int, ...]:
    parsed = token(run)
    lexemes = [fold(form) for form in parsed.exact]
    for word in parsed.words:
        if not is_stop_word(word, language):
            lexemes += _stems(word, language)
    return tuple(map(lexeme_number, filter(None, dict.fromkeys(lexemes))))


def _stems(word: str, language: str) -> list[str]:
    parts = german_parts(word) if language == "de" else ()
    return [stem(form, language) for form in (word, *parts)]


def _is_number(run: str) -> bool:
    return run[0].isdecimal() and len(run) <= 8 and _NUMBERED.fullmatch(run) is not None


def references(found: Sequence[str]) -> Iterator[str]:
    """A number with the word or sign before it: `§ 15a`, `Article 5`, `Table 3`."""
    for before, run in pairwise(found):
        if not _is_number(run):
            continue
        if before[0] == "§":
            yield f"§\x1f{run.lower()}"
        elif before.isalpha() and len(before) <= 20:
            yield f"{fold(before.lower())}\x1f{run.lower()}"


class _Piece(NamedTuple):
    """What stands between two spaces.

    Attributes:
        runs: its runs.
        number: the first of them where it may number the word before, else empty.
        references: lexeme numbers of the references inside it.
    """

    runs: tuple[str, ...]
    number: str
    references: tuple[int, ...]


@lru_cache(maxsize=65_536)
def _piece(piece: str) -> _Piece:
    found = tuple(runs(piece))
    number = found[0] if found and _is_number(found[0]) else ""
    inside = tuple(map(lexeme_number, references(found))) if len(found) > 1 else ()
    return _Piece(found, number, inside)


@lru_cache(maxsize=16)
def _reader(language: str) -> Callable[[str], tuple[tuple[int, ...], bool]]:
    """What gives the lexemes of a piece, run by run, and whether it is part of a reference.

    One for each language, since a cache finds a single string faster than a pair.
    """

    @lru_cache(maxsize=65_536)
    def read(piece: str) -> tuple[tuple[int, ...], bool]:
        word = piece.strip(AROUND_WORDS)
        if word.isalpha():
            return passage_lexemes(word, language), False
        if word.isalnum():  # remembered here alone: most stand in one place
            return _run_lexemes(word, language), _is_number(word)
        found, number, inside = _piece(piece)
        refers = bool(number or inside)
        if len(found) == 1:
            return passage_lexemes(found[0], language), refers
        return tuple(n for run in found for n in passage_lexemes(run, language)), refers

    return read


@lru_cache(maxsize=65_536)
def _reference(before: str, number: str) -> tuple[int, ...]:
    return tuple(map(lexeme_number, references((before, number))))


def _occurrences(text: str, language: str) -> dict[int, float]:
    """How often each lexeme stands in a text; every different run is taken apart once.

    No run has a space in it, so a text's runs are those of what stands between its spaces, and most
    of that is one word.
    """
    text = visible(text)
    if not spaced(text):
        return _of_runs(runs(text), language)
    pieces = text.split()
    read = _reader(language)
    counts: dict[int, float] = {}
    referring: list[int] = []
    for piece, times in Counter(pieces).items():
        lexemes, refers = read(piece)
        for lexeme in lexemes:
            if lexeme in counts:
                counts[lexeme] += times
            else:
                counts[lexeme] = times
        if refers:
            at = -1
            for _ in range(times):
                at = pieces.index(piece, at + 1)
                referring.append(at)
    for at in sorted(referring):
        _, number, inside = _piece(pieces[at])
        before = at
        while number and before:
            before -= 1
            if earlier := _piece(pieces[before]).runs:
                inside = _reference(earlier[-1], number) + inside
                break
        for lexeme in inside:
            counts[lexeme] = counts.get(lexeme, 0) + 1
    return counts


def _of_runs(found: Sequence[str], language: str) -> dict[int, float]:
    counts: dict[int, float] = {}
    for run, times in Counter(found).items():
        for number in passage_lexemes(run, language):
            counts[number] = counts.get(number, 0) + times
    for reference in references(found):
        number = lexeme_number(reference)
        counts[number] = counts.get(number, 0) + 1
    return counts


@lru_cache(maxsize=4_096)
def _context_occurrences(context: str, language: str) -> dict[int, float]:
    """Those of a context, which passages of one section share; not to be changed."""
    return _occurrences(context, language)


def analyze(
    text: str, language: str, *, context: str = "", context_weight: float = CONTEXT_WEIGHT
) -> Analysis:
    """Lexemes of a passage.

    Args:
        text: the passage.
        language: ISO 639-1 code of its document; unknown ones are not stemmed.
        context: title and heading path, indexed with the passage.
        context_weight: what one occurrence in the context counts.

    Returns:
        At most `MAX_TERMS` lexemes, the most frequent first.
    """
    language = analysed_as(language)
    counts = _occurrences(text, language)
    length = sum(counts.values())
    for number, times in _context_occurrences(context, language).items():
        counts[number] = counts.get(number, 0.0) + times * context_weight
    if len(counts) > MAX_TERMS:
        counts = dict(Counter(counts).most_common(MAX_TERMS))
    return Analysis(counts, length)


@lru_cache(maxsize=65_536)
def _question_lexemes(run: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Forms of a run under every candidate language of its script, and as it stands."""
    return _forms(token(run), languages, _stems)


def _forms(
    parsed: Token, languages: tuple[str, ...], stems: Callable[[str, str], list[str]]
) -> tuple[str, ...]:
    forms = dict.fromkeys(fold(form) for form in parsed.exact)
    for word in parsed.words:
        script = CYRILLIC_LANGUAGES if is_cyrillic(word) else LATIN_LANGUAGES
        fitting = [language for language in languages if language in script] or languages
        topical = [language for language in fitting if not is_stop_word(word, language)]
        for language in topical:
            forms |= dict.fromkeys(stems(word, language))
        if len(topical) == len(fitting):
            forms[fold(word)] = None
    return tuple(forms)


def names_identifier(text: str) -> bool:
    """Whether a question has a word with a digit in it: a number, a section, a part, a version.

    Meaning finds the neighbourhood of such a question, only words find the very thing.
    """
    return any(_HAS_DIGIT.search(run) for run in runs(visible(text[:QUERY_CHARS])))


def analyze_query(text: str, languages: Iterable[str] | None = None) -> dict[int, float]:
    """Lexemes of a question, under every language it may be in.

    A word is looked for by its stem in each candidate language of its script and as it stands,
    since the passage was indexed in the passage's own language. Two function words of a language
    are enough to leave the others out: their stems would only find other words.

    Args:
        text: any string; only the first 8,000 characters count.
        languages: candidate languages; None is all of them.

    Returns:
        Lexeme number to number of occurrences, at most 400; empty when no word is left.
    """
    found, likely = _taken_apart(text, languages)
    counts: Counter[str] = Counter()
    for run in found:
        counts.update(_question_lexemes(run, likely))
    counts.update(references(found))
    if not counts:
        counts.update(fold(run.lower()) for run in found)
    return {lexeme_number(form): float(n) for form, n in counts.most_common(QUERY_TERMS) if form}


def query_words(text: str, languages: Iterable[str] | None = None) -> tuple[tuple[int, ...], ...]:
    """The words of a question, for searches that demand every one of them.

    Args:
        text: any string; only the first 8,000 characters count.
        languages: candidate languages; None is all of them.

    Returns:
        Each word once, as the lexemes that stand for it: its stems in the candidate languages and
        its spellings, but no part of a German compound. At most 400 lexemes. What is a function
        word in any language the question may be in is left out, so there may be none.
    """
    found, likely = _taken_apart(text, languages)
    words: dict[tuple[int, ...], None] = {}
    room = QUERY_TERMS
    for parsed in (one for run in dict.fromkeys(found) for one in demanded(run)):
        if any(is_stop_word(word, language) for word in parsed.words for language in likely):
            continue
        forms = _forms(parsed, likely, lambda word, language: [stem(word, language)])
        word = tuple(lexeme_number(form) for form in forms if form)
        room -= len(word)
        if word and room >= 0:
            words[word] = None
    return tuple(words)


def _taken_apart(text: str, languages: Iterable[str] | None) -> tuple[list[str], tuple[str, ...]]:
    """The runs of a question and the languages it may be in."""
    found = list(runs(visible(text[:QUERY_CHARS])))
    candidates = tuple(dict.fromkeys(map(analysed_as, languages or LANGUAGES)))
    return found, likely_languages((run.lower() for run in found), candidates)
