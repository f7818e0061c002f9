"""Ranking of the reference store: BM25 and inner products, fused by reciprocal rank.

Belongs here: the formulas of `kb.search` over lists. What does not: which rows a reader may see.
Fusion: Cormack, Clarke, Büttcher, "Reciprocal rank fusion", SIGIR 2009.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kb_resources.store.memory_rows import Document, Row, Version
from kb_resources.store.passages import K1, TYPICAL_LENGTH, B
from kb_resources.store.records import Found, Vector

RRF_K = 60
Candidate = tuple[Document, Version, Row]


def numbers() -> Iterator[int]:
    """1, 2, 3 and on."""
    return itertools.count(1)


def first_average(rows: Sequence[Row]) -> float:
    """A scope's average length, frozen by its first put; see `passages`."""
    return (50 * TYPICAL_LENGTH + sum(row.length for row in rows)) / (50 + len(rows))


def ranked(
    candidates: Sequence[Candidate],
    live: Sequence[Row],
    *,
    lexemes: Mapping[int, float],
    vector: Vector | None,
    average_length: float,
    k: int,
    min_vector_score: float | None,
) -> tuple[Found, ...]:
    """The best of the candidates.

    Args:
        candidates: what the reader may see.
        live: passages of the scope that hold, for the weights of words.
        lexemes: of the question, number to occurrences.
        vector: of the question, or None.
        average_length: of the scope's passages.
        k: how many.
        min_vector_score: floor of the vector's score, or None.
    """
    rows = {row.number: (document, version, row) for document, version, row in candidates}
    frequency = {
        lexeme: sum(lexeme in row.terms for row in live) for lexeme in lexemes if candidates
    }
    text: dict[int, float] = {}
    near: dict[int, float] = {}
    for number, (_, _, row) in rows.items():
        score = sum(
            weight * _idf(frequency[lexeme], len(live)) * _saturated(row, lexeme, average_length)
            for lexeme, weight in lexemes.items()
            if lexeme in row.terms
        )
        if score > 0:
            text[number] = score
        if vector is not None and row.vector is not None:
            near[number] = float(np.dot(vector, row.vector))
    fused: dict[int, float] = {}
    for scores in (text, near):
        for rank, number in enumerate(sorted(scores, key=lambda n: (-scores[n], n)), 1):
            fused[number] = fused.get(number, 0.0) + 1 / (RRF_K + rank)
    found = [
        Found(document.record(version, row), score, text.get(number), near.get(number))
        for number, score in sorted(fused.items(), key=lambda item: (-item[1], item[0]))
        for document, version, row in [rows[number]]
        if min_vector_score is None or near.get(number, -math.inf) >= min_vector_score
    ]
    return tuple(found[:k])


def _idf(frequency: int, passages: int) -> float:
    return math.log(1 + (max(passages, frequency) - frequency + 0.5) / (frequency + 0.5))


def _saturated(row: Row, lexeme: int, average_length: float) -> float:
    count = row.terms[lexeme]
    return count * (K1 + 1) / (count + K1 * (1 - B + B * row.length / average_length))
