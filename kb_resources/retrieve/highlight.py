"""Where the words of a question stand in its hits.

Belongs here: one question, many hits. What does not: matching itself (`lexical.highlight`).
"""

from __future__ import annotations

from collections.abc import Iterable

from kb_resources.lexical import analyze_query, highlights
from kb_resources.retrieve.hit import Hit


def highlight(query: str, hits: Iterable[Hit]) -> list[list[dict[str, int]]]:
    """For each hit the spans of its text that the question's words found.

    Args:
        query: the question as it was searched for.
        hits: in any order.

    Returns:
        Per hit `{"start", "end"}`, half-open, in code points of `Hit.text`, ordered and disjoint;
        empty where only the meaning matched.
    """
    lexemes = analyze_query(query.encode("utf-8", "ignore").decode()).keys()
    return [
        [{"start": start, "end": end} for start, end in highlights(hit.text, hit.language, lexemes)]
        for hit in hits
    ]
