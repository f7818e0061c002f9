"""Publishing: passages with their lexical rows, validity and audiences.

Belongs here: calls that change what search can see, inside the caller's transaction. What does
not: vectors (`vectors`), reading (`search`). The rules are in Postgres (migration 0002), so that
no caller can publish past them. Weights: Robertson and Zaragoza, "BM25 and Beyond", 2009.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kb_resources.errors import NotFound
from kb_resources.store import wire
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql

DIMENSIONS = 1_000_000_000
K1 = 1.2
B = 0.75
TYPICAL_LENGTH = 100.0
"""Average length assumed before a scope has passages; weighs as much as 50 of them."""


@dataclass(frozen=True, slots=True)
class LexicalRow:
    """What the analyzer made of one chunk.

    Attributes:
        ordinal: the chunk's.
        terms: lexeme number (1 to 10^9) to term frequency.
        length: lexeme occurrences in the text.
        analyzer: version of the analyzer; empty: not checked against the scope's.
    """

    ordinal: int
    terms: Mapping[int, float]
    length: float
    analyzer: str = ""


@dataclass(frozen=True, slots=True)
class PutResult:
    """What publishing did.

    Attributes:
        state: `new`, `replaced` (another version ended), `reinstated` (an earlier version holds
            again), `rebuilt` (same version, other rows), `unchanged`.
        passages: passages the version has now.
        carried: those whose vector was not embedded for this put.
        waiting: those without a vector, with `partial` alone.
    """

    state: str
    passages: int
    carried: int
    waiting: int = 0


def put_version(
    conn: Conn,
    version_key: int,
    *,
    valid_from: datetime,
    audiences: Sequence[str],
    lexical: Sequence[LexicalRow],
    model_id: int | None,
    partial: bool = False,
) -> PutResult:
    """Publish a cleared version from its staged chunks and vectors; all or nothing.

    Args:
        conn: inside a transaction of the pipeline role.
        version_key: the version.
        valid_from: when it begins to hold; ignored where it holds already.
        audiences: who may read the document; none: the whole scope.
        lexical: one row per staged chunk.
        model_id: key of the model whose vectors are required (`vectors.model_key`), or None.
        partial: publish what vectors are staged; passages without one wait for theirs.

    Raises:
        NotFound: no such version.
        PolicyError: not cleared, nothing staged, or chunks without vector or lexical row.
    """
    row = conn.execute(sql("version_scope"), {"version_key": version_key}).fetchone()
    if row is None:
        raise NotFound(f"There is no version {version_key}.")
    scope_id, analyzer, held_average, key_mask, sparsevec_oid = row
    average = held_average or _first_average(lexical)
    arrays = lexical_arrays(lexical, average, key_mask=key_mask, sparsevec_oid=sparsevec_oid)
    result = conn.execute(
        sql("publish_version" if partial else "put_version"),
        {
            "version_key": version_key,
            "valid_from": valid_from,
            "audiences": list(audiences),
            "model_key": model_id,
            "analyzer": lexical[0].analyzer if lexical else analyzer,
            "average_length": average,
            "ordinals": [item.ordinal for item in lexical],
            "bm": arrays.weights,
            "ends": arrays.ends,
            "keys": arrays.keys,
        },
    ).fetchone()
    if result is None:
        raise NotFound(f"There is no version {version_key}.")
    refresh_if_due(conn, scope_id)
    return PutResult(*result)


def lexical_arrays(
    rows: Sequence[LexicalRow], average_length: float, *, key_mask: int, sparsevec_oid: int
) -> wire.LexicalArrays:
    """Lexical rows for SQL: BM25 weights without IDF, and the keys of the index.

    Args:
        rows: in the order in which the statement is told of them.
        average_length: the scope's.
        key_mask: `kb.scoped_key(scope, 0)`.
        sparsevec_oid: OID of the type in this database.
    """
    return wire.lexical_arrays(
        [row.terms for row in rows],
        [K1 * (1 - B + B * row.length / average_length) for row in rows],
        k1=K1,
        dimensions=DIMENSIONS,
        key_mask=key_mask,
        sparsevec_oid=sparsevec_oid,
    )


def _first_average(lexical: Sequence[LexicalRow]) -> float:
    """A scope's average length, frozen by its first put: a prior of 50 typical passages."""
    return (50 * TYPICAL_LENGTH + sum(row.length for row in lexical)) / (50 + len(lexical))


def refresh_statistics(conn: Conn, scope_id: int) -> int:
    """Count the document frequencies of a scope's live passages anew; returns their number."""
    row = conn.execute(sql("refresh_statistics"), {"scope_id": scope_id}).fetchone()
    return int(row[0]) if row else 0


def refresh_if_due(conn: Conn, scope_id: int, *, growth: float = 0.3) -> bool:
    """Refresh the statistics when a scope grew by more than `growth` since they were counted."""
    row = conn.execute(sql("statistics_due"), {"scope_id": scope_id, "growth": growth}).fetchone()
    if not row or not row[0]:
        return False
    refresh_statistics(conn, scope_id)
    return True


def set_audiences(conn: Conn, document_key: int, audiences: Sequence[str]) -> None:
    """Change who may read a document; holds from the next query on, for all its versions."""
    conn.execute(sql("set_audiences"), {"document_key": document_key, "audiences": list(audiences)})


def remove(conn: Conn, document_key: int, at: datetime) -> bool:
    """Take a document out of search from `at` on; its history stays.

    Returns:
        Whether it was to be found until then.
    """
    row = conn.execute(sql("end_document"), {"document_key": document_key, "at": at}).fetchone()
    return bool(row and row[0])


def end_validity(conn: Conn, version_key: int, at: datetime) -> bool:
    """End what the version's document holds at an instant; see `remove`."""
    row = conn.execute(sql("end_version"), {"version_key": version_key, "at": at}).fetchone()
    return bool(row and row[0])
