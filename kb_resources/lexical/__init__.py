"""Lexical analysis: text to weighted lexemes, the same for passages and questions.

Belongs here: words, identifiers, stems, stop words, BM25 weights. What does not: the database.
See Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand
from kb_resources.lexical.version import ANALYZER_VERSION

if TYPE_CHECKING:
    from kb_resources.lexical.analyzer import (
        Analysis,
        analyze,
        analyze_query,
        names_identifier,
        query_words,
    )
    from kb_resources.lexical.highlight import highlights, surfaces
else:
    __getattr__ = on_demand(
        __name__,
        {
            "analyzer": (
                "Analysis",
                "analyze",
                "analyze_query",
                "names_identifier",
                "query_words",
            ),
            "highlight": (
                "highlights",
                "surfaces",
            ),
        },
    )

__all__ = [
    "ANALYZER_VERSION",
    "Analysis",
    "analyze",
    "analyze_query",
    "highlights",
    "names_identifier",
    "query_words",
    "surfaces",
]
