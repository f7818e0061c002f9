"""What answering reads beside the search: how rare the words of a question are.

Belongs here: those rows. What does not: the logs (`logs`), kept citations (`citations`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql


def word_frequencies(
    conn: Conn, scopes: Sequence[str], lexemes: Iterable[int]
) -> tuple[dict[int, int], int]:
    """Passages that hold each lexeme, and all passages of the scopes, as last counted."""
    rows = conn.execute(
        sql("word_frequencies"), {"scopes": list(scopes), "lexemes": list(lexemes)}
    ).fetchall()
    counted = {lexeme: int(count) for lexeme, count in rows}
    return counted, counted.pop(None, 0)
