"""Documents of a folder, and which of them lost their file.

Belongs here: those rows in the caller's transaction. What does not: deciding what becomes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class FolderDocument:
    """A document whose file lies, or lay, below a folder.

    Attributes:
        document_key: row.
        document_id: id.
        source_uri: absolute path of its file.
        state: of the document.
        digest: SHA-256 hex of its newest version, None before it has one.
        size_bytes: of that version.
        since: when its file was first found missing, aware, or None.
        removed_at: when that removed it, or None.
    """

    document_key: int
    document_id: str
    source_uri: str
    state: str
    digest: str | None
    size_bytes: int | None
    since: datetime | None
    removed_at: datetime | None


def of_folder(conn: Conn, scope: str, folder: str) -> list[FolderDocument]:
    """Documents of a scope that came from below a folder, but for erased ones."""
    with conn.cursor(row_factory=class_row(FolderDocument)) as cursor:
        given = {"scope": scope, "prefix": folder.rstrip("/") + "/"}
        return cursor.execute(sql("folder_documents"), given).fetchall()


def note(conn: Conn, gone: Sequence[int], back: Sequence[int], now: datetime) -> None:
    """Note documents as missing from now on, unless they are; forget those that are back."""
    if gone:
        conn.execute(sql("add_vanished"), {"documents": list(gone), "now": now})
    if back:
        conn.execute(sql("forget_vanished"), {"documents": list(back)})


def set_removed(conn: Conn, document_key: int, now: datetime) -> None:
    """Note that the missing file removed its document."""
    conn.execute(sql("set_vanished_removed"), {"document_key": document_key, "now": now})
