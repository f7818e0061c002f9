"""One stemmer per language, the same for index and query.

Belongs here: which algorithm a language uses and our own suffix rules for Slovene, Macedonian and
Bulgarian. What does not: stop words, tokens. Snowball: https://snowballstem.org.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from kb_resources.lexical.fold import fold, is_cyrillic, to_latin
from kb_resources.lexical.light import bulgarian, macedonian, slovene

_SNOWBALL = {"en": "english", "de": "german", "ru": "russian", "sr": "serbian"}
_LIGHT: dict[str, Callable[[str], str]] = {
    "bg": bulgarian,
    "mk": macedonian,
    "sl": slovene,
}
_SAME_RULES = {"hr": "sr", "bs": "sr", "cnr": "sr", "sh": "sr"}
CYRILLIC_LANGUAGES = ("ru", "bg", "mk", "sr")
LATIN_LANGUAGES = ("en", "de", "sr", "sl")
LANGUAGES = ("en", "de", "sl", "sr", "ru", "bg", "mk")
"""Languages with rules of their own; `sr` serves the whole Serbo-Croatian group."""


def analysed_as(language: str) -> str:
    """The language whose rules apply: Croatian and Bosnian are analysed as Serbian."""
    return _SAME_RULES.get(language, language)


@lru_cache(maxsize=16)
def _snowball(algorithm: str) -> Callable[[str], str]:
    import Stemmer  # PyStemmer: Snowball's own C code, one algorithm loaded at a time

    stem: Callable[[str], str] = Stemmer.Stemmer(algorithm).stemWord
    return stem


def stem(word: str, language: str) -> str:
    """Stem and fold one lowercase word.

    A word in the other script than the language's is English where it is Latin (product names
    in Cyrillic texts) and kept whole where it is Cyrillic.

    Args:
        word: lowercase, as `tokens.token` gives it.
        language: as `analysed_as` gives it; unknown ones are folded only.
    """
    if is_cyrillic(word):
        if language == "sr":
            return fold(_snowball("serbian")(to_latin(word)))
        if language not in CYRILLIC_LANGUAGES:
            return fold(word)
    elif language in ("ru", "bg", "mk"):
        language = "en"
    if language in _SNOWBALL:
        return fold(_snowball(_SNOWBALL[language])(word))
    if language in _LIGHT:
        return fold(_LIGHT[language](word))
    return fold(word)
