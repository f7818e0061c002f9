"""Publishing: passages with their lexical rows, validity and audiences.

Belongs here: calls that change what search can see, inside the caller's transaction. What does
not: vectors (`vectors`), reading (`search`). The rules are in Postgres (migration 0002), so that
no caller can publish past them. Weights: Robertson and Zaragoza, "BM25 and Beyond", 2009.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, repeat
from typing import TYPE_CHECKING

from kb_resources.errors import KbError, NotFound
from kb_resources.store import wire
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql
from kb_resources.store.translate import reported

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class GivenVectors:
    """Vectors that come with a put, of chunks that have none staged.

    Attributes:
        ordinals: the chunks'.
        rows: `(n, dim) float32`, L2-normalised, one row per ordinal; checked by the caller.
    """

    ordinals: Sequence[int]
    rows: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VersionPut:
    """What `put_version` takes, for one of several versions.

    Attributes:
        version_key: the version.
        valid_from: when it begins to hold; ignored where it holds already.
        audiences: who may read the document; none: the whole scope.
        lexical: one row per staged chunk.
        model_id: key of the model whose vectors are required, or None.
    """

    version_key: int
    valid_from: datetime
    audiences: Sequence[str]
    lexical: Sequence[LexicalRow]
    model_id: int | None


def put_version(
    conn: Conn,
    version_key: int,
    *,
    valid_from: datetime,
    audiences: Sequence[str],
    lexical: Sequence[LexicalRow],
    model_id: int | None,
    partial: bool = False,
    given: GivenVectors | None = None,
) -> PutResult:
    """Publish a cleared version from its staged chunks and vectors; all or nothing.

    Args:
        conn: inside a transaction of the pipeline role.
        version_key: the version.
        valid_from: when it begins to hold; ignored where it holds already.
        audiences: who may read the document; none: the whole scope.
        lexical: one row per staged chunk.
        model_id: key of the model whose vectors are required (`vectors.model_key`), or None.
        partial: publish what vectors there are; passages without one wait for theirs.
        given: vectors that are not staged, with `partial` alone.

    Raises:
        NotFound: no such version.
        PolicyError: not cleared, nothing staged, or chunks without vector or lexical row.
    """
    row = conn.execute(sql("version_scope"), {"version_key": version_key}).fetchone()
    if row is None:
        raise NotFound(f"There is no version {version_key}.")
    scope_id, analyzer, held_average, key_mask, sparsevec_oid, halfvec_oid = row
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
            "ordinals": wire.int_array([item.ordinal for item in lexical]),
            "given": wire.int_array(given.ordinals) if given else None,
            "vectors": wire.halfvec_array(halfvec_oid, given.rows) if given else None,
            "bm": arrays.weights,
            "ends": arrays.ends,
            "keys": arrays.keys,
        },
    ).fetchone()
    if result is None:
        raise NotFound(f"There is no version {version_key}.")
    refresh_if_due(conn, scope_id)
    return PutResult(*result)


def put_versions(conn: Conn, puts: Sequence[VersionPut]) -> list[PutResult | KbError]:
    """Publish several versions in the caller's transaction, each as `put_version` would.

    What fails is rolled back alone, by a subtransaction of its own, and the others go on. All
    documents are locked until the transaction ends, and so are the lexicons of their scopes: keep
    it short, and below the 64 subtransactions that the server keeps at hand for its readers.

    Args:
        conn: inside a transaction of the pipeline role.
        puts: one per version, done in that order; of any scopes.

    Returns:
        For each put its result, or the error that `put_version` would have raised.

    Raises:
        psycopg.Error: what is not about one document: the server, a disk, a time limit.
    """
    keys = [put.version_key for put in puts]
    scopes: dict[int, tuple[int, str, float | None, int, int]] = {
        key: scope for key, *scope in conn.execute(sql("version_scopes"), {"version_keys": keys})
    }
    known = [put for put in puts if put.version_key in scopes]
    done = iter(_put_known(conn, known, [scopes[put.version_key] for put in known]))
    return [
        next(done) if key in scopes else NotFound(f"There is no version {key}.") for key in keys
    ]


def _put_known(
    conn: Conn,
    puts: Sequence[VersionPut],
    scopes: Sequence[tuple[int, str, float | None, int, int]],
) -> list[PutResult | KbError]:
    if not puts:
        return []
    averages: dict[int, float] = {}
    for put, (scope_id, _, held, *_rest) in zip(puts, scopes, strict=True):
        averages.setdefault(scope_id, held or _first_average(put.lexical))
    rows = [row for put in puts for row in put.lexical]
    of_row = [scope for put, scope in zip(puts, scopes, strict=True) for _ in put.lexical]
    arrays = lexical_arrays(
        rows,
        [averages[scope[0]] for scope in of_row],
        key_mask=[scope[3] for scope in of_row],
        sparsevec_oid=scopes[0][4],
    )
    results = conn.execute(
        sql("put_versions"),
        {
            "version_keys": [put.version_key for put in puts],
            "valid_from": [put.valid_from for put in puts],
            "readers": list(accumulate(len(put.audiences) for put in puts)),
            "audiences": [name for put in puts for name in put.audiences],
            "model_keys": [put.model_id for put in puts],
            "analyzers": [
                put.lexical[0].analyzer if put.lexical else scope[1]
                for put, scope in zip(puts, scopes, strict=True)
            ],
            "averages": [averages[scope[0]] for scope in scopes],
            "rows": list(accumulate(len(put.lexical) for put in puts)),
            "ordinals": wire.int_array([row.ordinal for row in rows]),
            "bm": arrays.weights,
            "ends": arrays.ends,
            "keys": arrays.keys,
        },
    ).fetchall()
    for scope_id in averages:
        refresh_if_due(conn, scope_id)
    return [
        PutResult(*done) if failed[0] is None else reported(*failed)
        for *done, failed in ((*row[:3], row[3:]) for row in results)
    ]


def lexical_arrays(
    rows: Sequence[LexicalRow],
    average_length: float | Sequence[float],
    *,
    key_mask: int | Sequence[int],
    sparsevec_oid: int,
) -> wire.LexicalArrays:
    """Lexical rows for SQL: BM25 weights without IDF, and the keys of the index.

    Args:
        rows: in the order in which the statement is told of them.
        average_length: the scope's; of rows of several scopes one for each.
        key_mask: `kb.scoped_key(scope, 0)`; likewise.
        sparsevec_oid: OID of the type in this database.
    """
    lengths = average_length if isinstance(average_length, Sequence) else repeat(average_length)
    return wire.lexical_arrays(
        [row.terms for row in rows],
        [K1 * (1 - B + B * row.length / typical) for row, typical in zip(rows, lengths)],  # noqa: B905
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
