"""Saying how far texts may travel: of a document, or of a scope and what is asked in it.

Belongs here: the change and its event. What does not: the rule (`answer.disclosure`).
"""

from __future__ import annotations

from kb_resources.errors import InputError
from kb_resources.model import DocumentKey, validate_scope
from kb_resources.store import documents, logs
from kb_resources.store.pool import Database

CLASSES = ("public", "internal", "confidential")


def classify(
    database: Database,
    scope: str,
    document_id: str | None,
    content_class: str | None,
    *,
    actor: str,
) -> None:
    """Set a content class; it holds from the next question on.

    Args:
        database: transactions of the pipeline role.
        scope: scope name.
        document_id: the document; None: the scope's questions and its documents without a class.
        content_class: `public`, `internal`, `confidential`; None takes an earlier word back.
        actor: who says so.

    Raises:
        InputError: no such class.
        NotFound: no such scope or document.
    """
    if content_class not in (*CLASSES, None):
        raise InputError(
            f"{content_class!r} is not a content class.", next_step=f"Use one of {CLASSES}."
        )
    name = validate_scope(scope)
    with database.transaction("pipeline") as conn:
        if document_id is not None:
            row = documents.load_one(conn, DocumentKey(name, document_id))
            documents.append_lifecycle(
                conn,
                row,
                "classed",
                actor=actor,
                version=row.latest_version,
                content_class=content_class or "as its scope",
            )
        logs.set_content_class(conn, name, document_id, content_class)
