"""What a search is asked with, checked and made strong: names, times, text, filters, weights.

Belongs here: the arguments of a search before any SQL. What does not: running it (`retriever`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kb_resources.errors import InputError, PolicyError, ScopeRequired, UnavailableError
from kb_resources.lexical import ANALYZER_VERSION, names_identifier
from kb_resources.model import validate_scope
from kb_resources.store.search import RowFilter, SearchScope
from kb_resources.supersede import check_instant

DEFAULT_K = 8
MAX_K = 100
MODES = ("hybrid", "text", "vector")
FUSIONS = ("adaptive", "rrf", "weighted")
MEANING_WEIGHT = 0.7
"""Of the vector list in weighted fusion, unless the caller says otherwise."""
FULL_SHARE = 0.3
"""Share of the best possible BM25 from which a rank by words counts in full.

Decided on the dev halves of the labelled sets (docs/adr/0011-search-defaults.md): plain reciprocal
rank loses .022 to meaning alone where question and passage differ in language.
"""
IDENTIFIER_VECTOR_WEIGHT = 0.5
"""Of the vector list in a question with an identifier; decided on `bench/search.py`, see there."""
_QUESTION_CHARS = 8_000
_MIN_CANDIDATES, _MAX_CANDIDATES = 100, 400


SearchFilters = RowFilter
"""Conditions as a caller states them; `row_filter` gives them checked."""


def scope_names(scope: str | None, scopes: Sequence[str] | None) -> list[str]:
    """The scopes named, each once, or ScopeRequired."""
    if isinstance(scopes, str):
        scopes = [scopes]
    names = [*([scope] if scope else []), *(scopes or ())]
    if not names:
        raise ScopeRequired("No scope was given.", next_step="Name one with --scope NAME.")
    return list(dict.fromkeys(validate_scope(name) for name in names))


def one_of(value: str, known: Sequence[str], what: str) -> str:
    """The value, or InputError where it is none of the known."""
    if value not in known:
        raise InputError(f"{value!r} is not a {what}.", next_step=f"Use one of {tuple(known)}.")
    return value


def candidates_of(k: int) -> int:
    """Length of each list before fusion, for so many hits wanted."""
    return max(_MIN_CANDIDATES, min(4 * k, _MAX_CANDIDATES))


def aware(instant: datetime) -> datetime:
    """The instant, or InputError where it has no zone or no year that a calendar holds."""
    return check_instant(instant)


def cleaned(text: str) -> str:
    """What can be stored and tokenised: no NUL, no lone surrogates, at most 8,000 characters."""
    text = text[:_QUESTION_CHARS].replace("\0", " ")
    return text.encode("utf-8", "ignore").decode().strip()


def vector_weight(text: str) -> float:
    """What a rank by meaning counts beside one by words."""
    return IDENTIFIER_VECTOR_WEIGHT if names_identifier(text) else 1.0


def may_not_leave() -> PolicyError:
    """The error for a question that only an endpoint of others could embed."""
    return PolicyError(
        "The question may not go to the embedding endpoint, which is not one of your own machines.",
        next_step="Search by text, class the scope as public, or declare KB_EMBED_HOSTING.",
        code="disclosure_blocked",
    )


def check_analyzer(scope: SearchScope) -> None:
    """Raise UnavailableError where another analyzer made the scope's lexical rows."""
    if scope.analyzer and scope.analyzer != ANALYZER_VERSION:
        raise UnavailableError(
            f"{scope.name!r} was indexed by analyzer {scope.analyzer}, this is {ANALYZER_VERSION}.",
            next_step="Rebuild the scope's lexical rows, or search with the version they are of.",
            code="analyzer_differs",
        )


def row_filter(filters: SearchFilters | None) -> RowFilter:
    """The filters in a form that can be stored and compared.

    NUL and half surrogate pairs occur in no stored text, so a condition on them holds for none:
    what is left of it could hold for others, and is refused instead.

    Raises:
        InputError: a condition holds such a character, or is no list of texts.
    """
    if filters is None:
        return RowFilter()
    return RowFilter(
        languages=_texts("languages", filters.languages),
        media_types=_texts("media_types", filters.media_types),
        documents=_texts("documents", filters.documents),
        heading_prefix=_texts("heading_prefix", filters.heading_prefix),
        metadata=_metadata(filters.metadata),
    )


def _texts(name: str, given: Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    if isinstance(given, str) or not all(isinstance(value, str) for value in given):
        raise InputError(
            f"{name} is no list of texts.", next_step="Give a list, of one if need be."
        )
    for value in given:
        _storable(name, value)
    return list(given)


def _metadata(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InputError("metadata is no JSON object.", next_step="Give keys with their values.")
    _walk(given, depth=0)
    return given


def _walk(value: Any, depth: int) -> None:
    if depth > 20:
        raise InputError("metadata is nested too deeply.", next_step="Nest at most 20 levels.")
    if isinstance(value, str):
        _storable("metadata", value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InputError("metadata has a key that is no text.", next_step="Use texts.")
            _storable("metadata", key)
            _walk(item, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _walk(item, depth + 1)
    elif not (value is None or isinstance(value, (bool, int)) or _is_finite(value)):
        raise InputError("metadata holds what JSON does not know.", next_step="Use plain JSON.")


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and abs(value) < float("inf")


def _storable(name: str, value: str) -> None:
    if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise InputError(
            f"{name} holds NUL or half a surrogate pair, which no stored text does.",
            next_step="Give text that can be encoded in UTF-8.",
            code="not_text",
        )
