"""Values as PostgreSQL receives them, for statements that would spend their time reading literals.

Belongs here: the binary format of arrays, of lexical rows in them, and of a vector. What does not:
which statement takes them. Formats: postgresql.org/docs, "pg_type" (`array_recv`, `int4recv`) and
pgvector's `sparsevec_recv`: dimensions, number of values, zero, indices from 0 in order, float4
values; `halfvec_recv`: dimensions, zero (both int2), float2 values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_INT4 = 23
"""OID of `integer`, the same on every server."""


class Received(bytes):
    """A parameter in binary format; the statement says its type by a cast."""


class _ReceivedDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


psycopg.adapters.register_dumper(Received, _ReceivedDumper)


@dataclass(frozen=True, slots=True)
class LexicalArrays:
    """Lexical rows of several chunks.

    Attributes:
        weights: `sparsevec[]`, one per row: lexeme number to weight.
        ends: `int[]`, where each row's keys end in `keys`.
        keys: `int[]`, the keys of all rows, one row after the other.
    """

    weights: Received
    ends: Received
    keys: Received


def int_array(values: NDArray[np.int64] | Sequence[int]) -> Received:
    """`int[]` of numbers that fit; one dimension."""
    import numpy as np

    if not len(values):
        return _empty(_INT4)
    elements = np.empty(len(values), [("size", ">i4"), ("value", ">i4")])
    elements["size"], elements["value"] = 4, values
    return Received(_head(_INT4, len(values)) + elements.tobytes())


def halfvec(vector: NDArray[np.float32]) -> Received:
    """`halfvec` of `(dim,) float32`, each number rounded to the nearest there is."""
    return Received(struct.pack(">hh", len(vector), 0) + vector.astype(">f2").tobytes())


def halfvec_array(halfvec_oid: int, vectors: NDArray[np.float32]) -> Received:
    """`halfvec[]` of the rows of `(n, dim) float32`; see `halfvec`."""
    import numpy as np

    count, dim = vectors.shape
    if not count:
        return _empty(halfvec_oid)
    layout = [("size", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", ">f2", (dim,))]
    elements = np.zeros(count, layout)
    elements["size"], elements["dim"], elements["values"] = 4 + 2 * dim, dim, vectors
    return Received(_head(halfvec_oid, count) + elements.tobytes())


def lexical_arrays(
    terms: Sequence[Mapping[int, float]],
    norms: Sequence[float],
    *,
    k1: float,
    dimensions: int,
    key_mask: int | Sequence[int],
    sparsevec_oid: int,
) -> LexicalArrays:
    """Saturated term frequencies (BM25 without IDF) and index keys.

    Args:
        terms: lexeme number (from 1) to term frequency, for each row.
        norms: `k1` times the length normalisation, for each row.
        k1: saturation.
        dimensions: of the vectors; no lexeme is greater.
        key_mask: what a lexeme is combined with by exclusive or, `kb.scoped_key(scope, 0)`: for
            all rows, or for each.
        sparsevec_oid: OID of the type in this database.

    Returns:
        Rows in the order given; within a row lexemes ascend. Weights have five significant digits.
    """
    import numpy as np

    count = len(terms)
    sizes = np.fromiter(map(len, terms), np.int64, count)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if count else 0
    lexemes = np.fromiter(chain.from_iterable(terms), np.int64, total)
    counts = np.fromiter(chain.from_iterable(row.values() for row in terms), np.float64, total)
    order = np.argsort(np.repeat(np.arange(count) << 32, sizes) + lexemes)
    lexemes, counts = lexemes[order], counts[order]
    weights = counts * (k1 + 1) / (counts + np.repeat(np.asarray(norms, np.float64), sizes))
    scale = 10.0 ** (4 - np.floor(np.log10(weights)))
    values = (np.round(weights * scale) / scale).astype(">f4")
    masks = np.repeat(np.broadcast_to(np.asarray(key_mask, np.int64), count), sizes)
    return LexicalArrays(
        _sparsevecs(sparsevec_oid, dimensions, sizes, lexemes - 1, values.view(">i4")),
        int_array(ends),
        int_array(lexemes ^ masks),
    )


def _sparsevecs(
    oid: int,
    dimensions: int,
    sizes: NDArray[np.int64],
    indices: NDArray[np.int64],
    values: NDArray[np.int32],
) -> Received:
    """`sparsevec[]` of vectors of `sizes` values each; values are the words of their float4."""
    import numpy as np

    if not len(sizes):
        return _empty(oid)
    # Before each vector its bytes, the dimensions, the number of its values, and zero.
    ends = np.cumsum(sizes)
    heads = 4 * np.arange(len(sizes)) + 2 * (ends - sizes)
    places = np.arange(len(indices)) + np.repeat(heads + 4 - (ends - sizes), sizes)
    words = np.zeros(4 * len(sizes) + 2 * len(indices), ">i4")
    words[heads], words[heads + 1], words[heads + 2] = 12 + 8 * sizes, dimensions, sizes
    words[places] = indices
    words[places + np.repeat(sizes, sizes)] = values
    return Received(_head(oid, len(sizes)) + words.tobytes())


def _empty(element_oid: int) -> Received:
    return Received(struct.pack(">iii", 0, 0, element_oid))


def _head(element_oid: int, count: int) -> bytes:
    return struct.pack(">iiiii", 1, 0, element_oid, count, 1)
