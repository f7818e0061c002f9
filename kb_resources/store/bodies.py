"""Bodies of versions as a reader may see them.

Belongs here: reading them inside row level security. What does not: passages (`search`), and
comparing (`kb_resources.supersede`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import class_row

from kb_resources.errors import NotFound, PolicyError
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class VersionBody:
    """A version's canonical Markdown; `created_at` is when its bytes were first seen."""

    version: int
    digest: str
    title: str | None
    created_at: datetime
    body: str


def body_of(
    conn: Conn, scope: str, document_id: str, version: int, *, audiences: Sequence[str] | None
) -> VersionBody:
    """One version's body.

    Args:
        conn: inside a transaction of the reading role.
        scope: scope name.
        document_id: the document.
        version: version number.
        audiences: names the reader holds; None shows all.

    Raises:
        NotFound: no such version for this reader.
        PolicyError: the version is not cleared, or its text was purged.
    """
    with conn.cursor(row_factory=class_row(VersionBody)) as cursor:
        row = cursor.execute(
            sql("body_of_version"),
            {
                "scope": scope,
                "document_id": document_id,
                "version": version,
                "everyone": audiences is None,
                "audiences": list(audiences or ()),
            },
        ).fetchone()
    if row is None:
        raise NotFound(
            f"There is no version {version} of {document_id!r} in {scope!r}.",
            next_step="Look with kb documents history.",
        )
    if row.body is None:
        raise PolicyError(
            f"The text of version {version} of {document_id!r} is not open to readers.",
            next_step="See its state with kb documents history.",
        )
    return row
