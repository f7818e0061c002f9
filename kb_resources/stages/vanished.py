"""Files that leave a folder: their documents leave search, come back with them, or follow a rename.

Belongs here: the use cases, Dagster-free. What does not: looking at folders and how long to wait
(`kb_assets.folders`). What a file's absence removed, its return restores; what a person removed
stays removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kb_resources.model import DocumentKey, DocumentState
from kb_resources.stages import removal
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest, register
from kb_resources.store import documents, vanished
from kb_resources.store.vanished import FolderDocument


def of_folder(line: Line, scope: str, folder: str) -> list[FolderDocument]:
    """Documents of a scope whose file lies, or lay, below a folder."""
    with line.capabilities.database.transaction("pipeline") as conn:
        return vanished.of_folder(conn, scope, folder)


def note(
    line: Line, gone: Sequence[FolderDocument], back: Sequence[FolderDocument], now: datetime
) -> None:
    """Remember since when files are missing, and forget those that are there again."""
    if gone or back:
        with line.capabilities.database.transaction("pipeline") as conn:
            vanished.note(conn, [d.document_key for d in gone], [d.document_key for d in back], now)


def remove(
    line: Line, scope: str, document: FolderDocument, *, actor: str, now: datetime
) -> tuple[DocumentKey, ...]:
    """Take a document out of search because its file is gone; its history stays.

    Returns:
        Documents that the line has to take up now: duplicates that lost their first.
    """
    key = DocumentKey(scope, document.document_id)
    with line.capabilities.database.transaction("pipeline") as conn:
        # Before the removal: killed in between, the next look removes it once more, harmlessly.
        vanished.set_removed(conn, document.document_key, now)
    reason = "Its file is no longer in the folder."
    return removal.remove(line.capabilities, key, actor=actor, reason=reason).to_run


def restore(
    line: Line, scope: str, document: FolderDocument, *, actor: str
) -> tuple[DocumentKey, ...]:
    """Bring back a document whose file is there again.

    Returns:
        The document, where the line has to take it up.
    """
    key = DocumentKey(scope, document.document_id)
    reason = "Its file is in the folder again."
    return removal.restore(line.capabilities, key, actor=actor, reason=reason).to_run


def rename(line: Line, document: FolderDocument, request: IngestRequest) -> DocumentKey:
    """Let a document follow its file to another path; its id, versions and citations stay.

    Args:
        line: whose ledger.
        document: with the old path.
        request: with the new path and what is said about it there.

    Returns:
        The document, which the line has to take up: its name and readers may be others.
    """
    if document.state == DocumentState.REMOVED:
        restore(line, request.scope, document, actor=request.actor)
    with line.capabilities.database.transaction("pipeline") as conn:
        key = register(conn, request, line.languages)
        row = documents.load_one(conn, key)
        documents.append_lifecycle(
            conn,
            row,
            "renamed",
            actor=request.actor,
            version=row.latest_version,
            before=document.source_uri,
            path=request.source.uri,
        )
        documents.reopen(conn, row)
        vanished.note(conn, [], [document.document_key], line.capabilities.clock())
    return key
