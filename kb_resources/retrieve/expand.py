"""A question asked in more words than it has: variations found by whoever plugs one in.

Belongs here: what a variation counts, and one expander that needs no model. What does not: ranking.
Off unless a `Retriever` is given an expander (KB_SYNONYMS). The question itself always comes first
and counts most, so that an expander can add hits and hardly displace what the question finds.
Combining evidence of several formulations: Belkin et al., "Combining the evidence of multiple query
representations for information retrieval", 1995.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb_resources.errors import InputError
from kb_resources.lexical import analyze_query
from kb_resources.lexical.stems import LANGUAGES
from kb_resources.lexical.stopwords import likely_languages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Expander = Callable[[str], Sequence[str]]
"""Gives variations of a question, best first; they may repeat it."""

MAX_VARIATIONS = 10
VARIATION_WEIGHT = 0.3
"""What a word or a meaning counts that only a variation has, beside one of the question."""
_WORD = re.compile(r"\w+")


def variations(expander: Expander | None, text: str) -> list[str]:
    """The question, then at most ten variations, each once."""
    given = expander(text) if expander is not None and text else ()
    others = (str(one).strip() for one in given)
    return list(dict.fromkeys([text, *(one for one in others if one)]))[: MAX_VARIATIONS + 1]


def lexemes_of(asked: Sequence[str]) -> dict[int, float]:
    """Lexemes of the question, and at less weight those that only variations have."""
    found = analyze_query(asked[0])
    for variation in asked[1:]:
        for number in analyze_query(variation):
            found.setdefault(number, VARIATION_WEIGHT)
    return found


def vector_of(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """One direction for all.

    Args:
        vectors: `(n, dim) float32`, the question's first, each L2-normalised.

    Returns:
        `(dim,) float32`, L2-normalised.
    """
    own: NDArray[np.float32] = vectors[0]
    if len(vectors) == 1:
        return own
    mixed: NDArray[np.float32] = own + VARIATION_WEIGHT * vectors[1:].mean(axis=0)
    length = float((mixed * mixed).sum()) ** 0.5
    if length > 0:
        mixed /= length
        return mixed
    return own


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Puts other words of the same meaning in place of a question's words, one at a time.

    Attributes:
        table: word in lower case to its synonyms, best first.
        most: variations at most, 1 to 10.
        by_language: further tables, by ISO 639-1 code of the languages a question may be in.
    """

    table: Mapping[str, Sequence[str]]
    most: int = 3
    by_language: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def __call__(self, text: str) -> list[str]:
        """Variations of a question; none where no word of it is in the table."""
        spoken: Sequence[str] = ()
        if self.by_language:
            words = [match.group().lower() for match in _WORD.finditer(text)]
            likely = likely_languages(words, tuple(LANGUAGES))
            spoken = [language for language in likely if language in self.by_language]
        found = [
            text[: match.start()] + other + text[match.end() :]
            for match in _WORD.finditer(text)
            for other in self._others(match.group().casefold(), spoken)
        ]
        return found[: max(1, min(self.most, MAX_VARIATIONS))]

    def _others(self, word: str, spoken: Sequence[str]) -> list[str]:
        tables = [self.table, *(self.by_language[language] for language in spoken)]
        return list(dict.fromkeys(other for table in tables for other in table.get(word, ())))


def read_synonyms(file: Path) -> Synonyms:
    """Synonyms of a TOML file: `word = ["other", …]`, in a table such as `[de]` for one language.

    `variations = 5` at the top gives how many variations a question gets, 1 to 10; 3 without it.

    Raises:
        InputError: the file is not there, not TOML, or holds something else.
    """
    try:
        given = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise _no_synonyms(file, error.strerror or "it cannot be read") from error
    except ValueError as error:  # neither UTF-8 nor TOML
        raise _no_synonyms(file, str(error)) from error
    most = given.pop("variations", 3)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_VARIATIONS:
        raise _no_synonyms(file, "`variations` is not a number from 1 to 10")
    tables = {name: _table(file, value) for name, value in given.items() if isinstance(value, dict)}
    plain = {name: value for name, value in given.items() if not isinstance(value, dict)}
    if unknown := set(tables) - set(LANGUAGES):
        raise _no_synonyms(file, f"[{min(unknown)}] is none of {', '.join(LANGUAGES)}")
    return Synonyms(_table(file, plain), most, tables)


def _table(file: Path, given: Mapping[str, Any]) -> dict[str, list[str]]:
    for word, others in given.items():
        if not isinstance(others, list) or not all(isinstance(one, str) and one for one in others):
            raise _no_synonyms(file, f"{word!r} has no list of words")
    return {word.casefold(): others for word, others in given.items()}


def _no_synonyms(file: Path, why: str) -> InputError:
    return InputError(
        f"{file} holds no synonyms: {why}.",
        next_step='Write lines such as holiday = ["leave", "vacation"], or unset KB_SYNONYMS.',
        code="bad_synonyms",
    )
