"""The search statement: parameters in, ranked rows out.

Belongs here: running it as the reading role. What does not: analysing or embedding the question,
resolving the principal (`retrieve`). Fusion: Cormack, Clarke, Büttcher, "Reciprocal rank fusion
outperforms Condorcet", SIGIR 2009, with k = 60.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from kb_resources.store import wire
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SearchScope:
    """A scope the connection may search.

    Attributes:
        name: its name.
        scope_id: its id.
        analyzer: of its lexical rows, None while nothing is published in it.
        live: identity of the model it is searched by, None while it has no vectors.
        live_key: its key.
    """

    name: str
    scope_id: int
    analyzer: str | None
    live: str | None = None
    live_key: int | None = None


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Conditions on passages, applied inside both lists; None leaves a condition out.

    Attributes:
        languages: ISO 639-1 codes.
        media_types: sniffed media types.
        documents: document ids.
        heading_prefix: first headings of the path, from the root down.
        metadata: JSON object that the source's metadata must contain.
    """

    languages: Sequence[str] | None = None
    media_types: Sequence[str] | None = None
    documents: Sequence[str] | None = None
    heading_prefix: Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Everything the statement is given.

    Attributes:
        scope_ids: scopes to search; rows of others never become candidates.
        lexemes: lexeme number to weight; empty leaves the lexical list out.
        vector: `(dim,) float32`, L2-normalised, or None to leave the vector list out.
        model_key: whose vectors; None only without a vector.
        audiences: names held; None is every audience (system only).
        as_of: instant of valid time, aware.
        historical: also rows that do not hold at `as_of`.
        k: rows wanted.
        candidates: length of each list before fusion.
        filters: further conditions.
        vector_weight: what a rank in the vector list counts beside one in the text list.
        full_share: share of the best possible BM25 from which a rank in the text list counts in
            full; 0: always (plain reciprocal rank).
        known_at: state of knowledge to search, aware; None is now.
        scopes: names of `scope_ids`, in their order; without them they are looked up.
        words: each as the lexemes that stand for it; a passage holds one of every word's, however
            it is found. Empty: no word is demanded.
    """

    scope_ids: Sequence[int]
    lexemes: Mapping[int, float]
    vector: NDArray[np.float32] | None
    model_key: int | None
    audiences: Sequence[str] | None
    as_of: datetime
    historical: bool
    k: int
    candidates: int
    filters: RowFilter = RowFilter()
    vector_weight: float = 1.0
    full_share: float = 0.0
    known_at: datetime | None = None
    scopes: Sequence[str] = ()
    words: Sequence[Sequence[int]] = ()


def visible_scopes(conn: Conn, names: Sequence[str]) -> dict[str, SearchScope]:
    """The named scopes as far as row level security shows them."""
    rows = conn.execute(sql("search_scopes"), {"scopes": list(names)}, prepare=True).fetchall()
    return {row[0]: SearchScope(*row) for row in rows}


def run(conn: Conn, query: SearchQuery) -> list[dict[str, Any]]:
    """Ranked rows, best first; keys are the columns of `kb.search`."""
    chosen = query.filters
    numbered = [(nth, lexeme) for nth, word in enumerate(query.words) for lexeme in word]
    given = {
        "scope_ids": list(query.scope_ids),
        "lexemes": list(query.lexemes),
        "weights": list(query.lexemes.values()),
        "vector": None if query.vector is None else wire.halfvec(query.vector),
        "model_key": query.model_key,
        "audiences": _list(query.audiences),
        "as_of": query.as_of,
        "historical": query.historical,
        "filtered": chosen != RowFilter(),
        "languages": _list(chosen.languages),
        "media_types": _list(chosen.media_types),
        "documents": _list(chosen.documents),
        "heading_prefix": _list(chosen.heading_prefix),
        "metadata": None if chosen.metadata is None else Jsonb(dict(chosen.metadata)),
        "vector_weight": query.vector_weight,
        "full_share": query.full_share,
        "known_at": query.known_at,
        "k": query.k,
        "candidates": query.candidates,
        "scopes": list(query.scopes) or None,
        "words": [nth for nth, _ in numbered] or None,
        "word_lexemes": [lexeme for _, lexeme in numbered] or None,
    }
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(sql("search"), given, prepare=True).fetchall()


def _list(values: Sequence[str] | None) -> list[str] | None:
    return None if values is None else list(values)


def passage(
    conn: Conn,
    scope: str,
    passage_id: str,
    *,
    audiences: Sequence[str] | None,
    version: int | None,
) -> dict[str, Any] | None:
    """One passage's row, the one that holds now by default; None where the reader sees none."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            sql("passage_by_id"),
            {
                "scope": scope,
                "passage_id": passage_id,
                "everyone": audiences is None,
                "audiences": list(audiences or ()),
                "version": version,
            },
        ).fetchone()
