"""Function words per language, our own lists as data (`stopwords/<language>.txt`).

Belongs here: reading the lists, and telling a question's language by them. What does not: when a
stop word is kept after all (`analyzer`). The lists were written for this project.
Guessing by function words: Ingle, "Language identification: short words", 1976.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from kb_resources.lexical.fold import is_cyrillic, to_latin

_LEAST_EVIDENCE = 2


@lru_cache(maxsize=32)
def stop_words(language: str) -> frozenset[str]:
    """Lowercase function words of a language; empty where there is no list."""
    resource = files(__package__ or "").joinpath("stopwords", f"{language}.txt")
    if not language.isalpha() or not resource.is_file():
        return frozenset()
    return frozenset(resource.read_text("utf-8").split())


def is_stop_word(word: str, language: str) -> bool:
    """Whether a lowercase word carries no topic in a language."""
    if language == "sr" and is_cyrillic(word):
        word = to_latin(word)
    return word in stop_words(language)


def likely_languages(words: Iterable[str], candidates: tuple[str, ...]) -> tuple[str, ...]:
    """The candidates whose function words a question has most of; all where it has hardly any.

    Args:
        words: lowercase words of the question.
        candidates: languages it may be in.
    """
    hits = Counter(
        language for word in words for language in candidates if is_stop_word(word, language)
    )
    most = max(hits.values(), default=0)
    if most < _LEAST_EVIDENCE:
        return candidates
    return tuple(language for language in candidates if hits[language] == most)
