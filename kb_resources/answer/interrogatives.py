"""Words of a question that say what kind of answer is wanted: `when`, `how long`, `сколько`.

An answer puts a date or a figure in their place and need not hold them. Belongs here: the words,
beside the function words that `lexical.stopwords` has for search. What does not: the weight of the
others (`extract`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kb_resources.lexical.fold import is_cyrillic, to_latin
from kb_resources.lexical.stopwords import is_stop_word

_WORDS = {
    "en": "many much long often soon far high large big tall old deep wide heavy fast late early",
    "de": "wann wieviel wieviele viel viele vielen lange oft hoch groß weit alt schnell spät früh "
    "schwer bald breit tief teuer häufig gibt woher wohin womit wofür wovon wogegen",
    "bg": "колко колкав колкава колкаво колкави къде дълго често голям голяма далеч висок висока",
    "mk": "колкав колкава колкаво колкави долго често",
    "ru": "сколько скольких скольким сколькими каков какова каково каковы откуда долго часто",
    "sr": "koliko koliki kolika kolike koliku kolikog kolikom odakle dugo često",
    "sl": "kolikšen kolikšna kolikšno kolikšni kolikšne kolikokrat dolgo pogosto",
}
_ASKING = {language: frozenset(words.split()) for language, words in _WORDS.items()}


def without_topic(words: Sequence[str]) -> frozenset[str]:
    """Those words of a question that no answer needs to hold.

    One such word tells the language, which is less than search asks for: there a word left out by
    mistake is not found, here it is only not demanded.

    Args:
        words: lowercase, of the whole question.

    Returns:
        Function words and interrogatives of the languages that have most of them.
    """
    found = {word: _languages(word) for word in words}
    counts = Counter(language for word in words for language in found[word])
    most = max(counts.values(), default=0)
    spoken = {language for language, times in counts.items() if times == most}
    return frozenset(word for word, languages in found.items() if languages & spoken)


def _languages(word: str) -> set[str]:
    return {
        language
        for language, asking in _ASKING.items()
        if is_stop_word(word, language) or _spelt(word, language) in asking
    }


def _spelt(word: str, language: str) -> str:
    return to_latin(word) if language == "sr" and is_cyrillic(word) else word
