"""What convert and enrich asked of a model, and what the model said about sections.

Belongs here: rows of the bill and of the notes, in the caller's transaction. What does not: the
log of what left (`logs`), asking (`stages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg.types.json import Json

from kb_resources.store.codec import storable_json
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import rows, sql

Row = dict[str, Any]


def add_call(conn: Conn, row: Mapping[str, Any]) -> None:
    """Append one call; the keys of `row` are the columns of `kb.model_call`."""
    conn.execute(sql("add_model_call"), row)


def known_notes(conn: Conn, scope_id: int, enricher: str, hashes: Sequence[str]) -> dict[str, Row]:
    """Notes that an enricher made of the same input before, by its hash."""
    given = {"scope_id": scope_id, "enricher": enricher, "hashes": list(hashes)}
    return {row["node_hash"]: row["notes"] for row in rows(conn, "known_notes", given)}


def notes_around(
    conn: Conn, scope: str, document_id: str, version: int, byte_start: int, byte_end: int
) -> list[Row]:
    """Notes on the sections around a span of a body, outermost first: `enricher`, `notes`."""
    given = {"scope": scope, "document_id": document_id, "version": version}
    return rows(conn, "passage_notes", given | {"byte_start": byte_start, "byte_end": byte_end})


def replace_notes(
    conn: Conn, row: DocumentRow, enricher: str, notes: Iterable[Mapping[str, Any]]
) -> None:
    """Store a version's notes in place of those before.

    Args:
        conn: inside a transaction.
        row: whose newest version.
        enricher: who made them.
        notes: node_id, depth, byte_start, byte_end, node_hash, notes.
    """
    conn.execute(sql("drop_notes"), {"version_key": row.version_key})
    key = {
        "version_key": row.version_key,
        "scope_id": row.scope_id,
        "body_digest": row.body_digest,
        "enricher": enricher,
    }
    with conn.cursor() as cursor:
        cursor.executemany(
            sql("add_notes"),
            [{**note, **key, "notes": Json(storable_json(note["notes"]))} for note in notes],
        )
