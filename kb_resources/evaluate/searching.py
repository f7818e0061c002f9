"""Questions asked of a scope through the retriever, and labels held against what is in it.

Belongs here: the searcher that measures this installation, and stale labels. What does not:
judging. Other engines and shadow generations bring a searcher of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb_resources.evaluate.evaluation import POOL
from kb_resources.evaluate.questions import Label, Question
from kb_resources.evaluate.score import Found, Searcher
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever
from kb_resources.retrieve.outline import node_id
from kb_resources.store import evaluations
from kb_resources.store.documents import Conn


def searcher(
    retriever: Retriever,
    scope: str,
    principal: Principal,
    *,
    mode: str = "hybrid",
    words: str = "any",
) -> Searcher:
    """Asks the retriever for a pool of hits, as the principal."""

    def search(question: Question) -> Found:
        found = retriever.search(
            question.text, principal=principal, scope=scope, mode=mode, words=words, k=POOL
        )
        first = found.hits[0].relevance if found.hits else None
        return Found(found.hits, found.nothing_relevant, first)

    return search


def stale_labels(conn: Conn, scope: str, questions: Sequence[Question]) -> list[str]:
    """Labels that name nothing which is found in the scope now, a sentence each.

    Args:
        conn: a transaction that sees the scope.
        scope: scope name.
        questions: labelled.
    """
    names = sorted({label.document for question in questions for label in question.labels})
    known: dict[str, Mapping[str, Any]] = {}
    for row in evaluations.labelled(conn, scope, names):
        known[row["document_id"]] = known[row["origin"]] = row
    return [
        f"Line {question.line}, question {question.id!r}: {why}"
        for question in questions
        for label in question.labels
        if (why := _stale(label, known.get(label.document)))
    ]


def _stale(label: Label, row: Mapping[str, Any] | None) -> str:
    if row is None:
        return f"no document {label.document!r} is found in the scope."
    paths = [tuple(path) for path in row["paths"]]
    if label.section and not any(path[: len(label.section)] == label.section for path in paths):
        return f"{label.document!r} has no section {' › '.join(label.section)}."
    if label.node and label.node not in {
        node_id(path[:depth]) for path in paths for depth in range(len(path) + 1)
    }:
        return f"{label.document!r} has no node {label.node}."
    if label.span is None:
        return ""
    if label.version is not None and label.version != row["version"]:
        return (
            f"its bytes count in version {label.version} of {label.document!r}, "
            f"{row['version']} is found now."
        )
    if label.span[1] > row["size_bytes"]:
        return f"{label.document!r} ends before byte {label.span[1]}."
    return ""
