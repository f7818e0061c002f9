"""Rebuilding a scope's lexical rows: for another analyzer, or for another average length.

Belongs here: doing anew for a whole scope what `passages.put_version` writes per version. What
does not: the analyzer, which the caller hands in. Length normalisation: Robertson and Zaragoza,
"The Probabilistic Relevance Framework", 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kb_resources.store.documents import Conn
from kb_resources.store.passages import (
    TYPICAL_LENGTH,
    LexicalRow,
    lexical_arrays,
    refresh_statistics,
)
from kb_resources.store.sql import rows as rows_of
from kb_resources.store.sql import sql

_BATCH = 500


@dataclass(frozen=True, slots=True)
class StoredText:
    """A published passage as the analyzer needs it."""

    passage_key: int
    text: str
    context: str
    language: str


Analyze = Callable[[StoredText], LexicalRow]
"""Lexical row of a passage; its ordinal is not used."""


def rebuild(conn: Conn, scope_id: int, analyze: Analyze) -> int:
    """Analyse every passage of a scope anew and measure the average length again.

    One transaction: searches see the old rows until it commits, puts wait. Use it when the
    analyzer's version changed, or when the texts became much longer or shorter.

    Args:
        conn: inside a transaction of the pipeline role.
        scope_id: the scope.
        analyze: the analyzer that questions will be analysed with.

    Returns:
        Number of passages.
    """
    conn.execute(sql("lock_lexicon"), {"scope_id": scope_id})
    encoding = rows_of(conn, "lexical_encoding", {"scope_id": scope_id})[0]
    lengths = [analyze(text).length for text in _sample(conn, scope_id)]
    average = sum(lengths) / len(lengths) if lengths else TYPICAL_LENGTH
    count, analyzer = 0, ""
    for batch in _batches(conn, scope_id):
        rows = [analyze(text) for text in batch]
        arrays = lexical_arrays(rows, average, **encoding)
        conn.execute(
            sql("replace_lexical"),
            {
                "passage_keys": [text.passage_key for text in batch],
                "bm": arrays.weights,
                "ends": arrays.ends,
                "keys": arrays.keys,
            },
        )
        count, analyzer = count + len(batch), rows[0].analyzer
    if count:
        given = {"scope_id": scope_id, "analyzer": analyzer, "average_length": max(average, 1.0)}
        conn.execute(sql("set_lexicon"), given)
        refresh_statistics(conn, scope_id)
    return count


def outdated(conn: Conn, analyzer: str) -> list[tuple[int, str]]:
    """Ids and names of scopes whose lexical rows another analyzer made; `put` refuses them."""
    rows = conn.execute(sql("outdated_scopes"), {"analyzer": analyzer}).fetchall()
    return [(scope_id, name) for scope_id, name in rows]


def _batches(conn: Conn, scope_id: int) -> Iterator[list[StoredText]]:
    after = 0
    while True:
        rows = conn.execute(
            sql("passages_after"), {"scope_id": scope_id, "after": after, "limit": _BATCH}
        ).fetchall()
        if not rows:
            return
        yield [StoredText(*row) for row in rows]
        after = rows[-1][0]


def _sample(conn: Conn, scope_id: int, size: int = 2000) -> list[StoredText]:
    rows = conn.execute(sql("sample_passages"), {"scope_id": scope_id, "size": size}).fetchall()
    return [StoredText(*row) for row in rows]
