"""Finding passages: question to ranked hits with their provenance.

Belongs here: one search from question to result, for one principal. What does not: SQL (`store`),
analysing text (`lexical`), answers. See design record "One statement per search" in docs/adr.
"""

from kb_resources.retrieve.collapse import Collapsed, collapse
from kb_resources.retrieve.context import PassageContext, passage_context
from kb_resources.retrieve.document_text import DocumentText, document_text
from kb_resources.retrieve.embedded import EmbeddedQuestion
from kb_resources.retrieve.expand import Expander, Synonyms
from kb_resources.retrieve.explain import Explanation, explain_passage
from kb_resources.retrieve.hierarchy import Joined, hierarchy_join
from kb_resources.retrieve.highlight import highlight
from kb_resources.retrieve.hit import Hit, SearchResult, deep_link
from kb_resources.retrieve.outline import Outline, OutlineNode, document_outline
from kb_resources.retrieve.retriever import Retriever, SearchFilters
from kb_resources.retrieve.section_notes import NamedEntity, SectionNotes

__all__ = [
    "Collapsed",
    "DocumentText",
    "EmbeddedQuestion",
    "Expander",
    "Explanation",
    "Hit",
    "Joined",
    "NamedEntity",
    "Outline",
    "OutlineNode",
    "PassageContext",
    "Retriever",
    "SearchFilters",
    "SearchResult",
    "SectionNotes",
    "Synonyms",
    "collapse",
    "deep_link",
    "document_outline",
    "document_text",
    "explain_passage",
    "hierarchy_join",
    "highlight",
    "passage_context",
]
