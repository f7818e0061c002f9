"""What stages leave for the next: results with their fingerprints, and staged chunks.

Belongs here: rows between two stages. What does not: the retrieval tables.
Bulk writes use COPY (psycopg documentation, "Using COPY TO and COPY FROM").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from kb_resources.model import ORDER, AnyStage, Chunk, stage_of
from kb_resources.store.codec import storable, storable_json
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class StageResult:
    """The newest result of one stage for one version.

    `output` is a hash of what the stage produced: part of the next stage's fingerprint.
    """

    version_key: int
    stage: str
    fingerprint: str
    output: str
    state: str | None
    reason: str
    counts: dict[str, float]
    details: dict[str, Any]


def results(
    conn: Conn, version_keys: Sequence[int], *stages: AnyStage
) -> dict[tuple[int, AnyStage], StageResult]:
    """Stored results by version and stage."""
    with conn.cursor(row_factory=class_row(StageResult)) as cursor:
        rows = cursor.execute(
            sql("stage_results"),
            {"version_keys": list(version_keys), "stages": [stage.value for stage in stages]},
        ).fetchall()
    return {(row.version_key, stage_of(row.stage)): row for row in rows}


def save_result(
    conn: Conn,
    row: DocumentRow,
    stage: AnyStage,
    *,
    fingerprint: str,
    output: str,
    state: str | None,
    reason: str,
    counts: Mapping[str, float],
    details: Mapping[str, Any],
    duration_s: float,
) -> None:
    """Store a stage's result; a new output forgets the results of all later stages."""
    known = results(conn, [row.version_key or 0], stage).get((row.version_key or 0, stage))
    if known is None or known.output != output or state is not None:
        forget_after(conn, row, stage)
    conn.execute(
        sql("save_stage_result"),
        {
            "version_key": row.version_key,
            "stage": stage.value,
            "scope_id": row.scope_id,
            "fingerprint": fingerprint,
            "output": output,
            "state": state,
            "reason": reason,
            "counts": Jsonb(dict(counts)),
            "details": Jsonb(storable_json(details)),
            "duration_s": duration_s,
        },
    )


def forget_after(
    conn: Conn,
    row: DocumentRow,
    stage: AnyStage,
    *,
    inclusive: bool = False,
    sparing: AnyStage | None = None,
) -> None:
    """Drop the results of the stages after `stage`, and its own when `inclusive`.

    `sparing` keeps one of them: the stage whose refusal is the document's end.
    """
    start = ORDER.index(stage) + (0 if inclusive else 1)
    dropped = [s.value for s in ORDER[start:] if s is not sparing]
    conn.execute(sql("drop_stage_results"), {"version_key": row.version_key, "stages": dropped})


def replace_chunks(conn: Conn, row: DocumentRow, chunks: Sequence[Chunk]) -> None:
    """Stage the version's chunks in place of those staged before."""
    conn.execute(sql("replace_staged_chunks"), {"version_key": row.version_key})
    with conn.cursor() as cursor, cursor.copy(sql("copy_staged_chunks")) as copy:
        for chunk in chunks:
            copy.write_row(
                (
                    row.version_key,
                    chunk.ordinal,
                    row.scope_id,
                    chunk.passage_id,
                    storable(chunk.context),
                    [storable(part) for part in chunk.heading_path],
                    chunk.page,
                    chunk.locator,
                    chunk.byte_start,
                    chunk.byte_end,
                    chunk.char_start,
                    chunk.char_end,
                    chunk.content_hash,
                    chunk.embed_hash,
                    chunk.token_count,
                )
            )


def restage(conn: Conn, version_key: int) -> None:
    """Stage a published version's chunks again, where none are staged, for work after chunking."""
    conn.execute(sql("restage_published"), {"version_key": version_key})


def load_chunks(conn: Conn, version_key: int, body: str) -> tuple[Chunk, ...]:
    """The version's chunks, staged or published, with their texts cut from the body.

    Args:
        conn: inside a transaction.
        version_key: whose chunks.
        body: the version's body.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        given = {"version_key": version_key}
        rows = cursor.execute(sql("load_staged_chunks"), given).fetchall()
        if not rows:
            rows = cursor.execute(sql("load_published_chunks"), given).fetchall()
    data = body.encode()
    return tuple(
        Chunk(
            **{**row, "heading_path": tuple(row["heading_path"])},
            text=data[row["byte_start"] : row["byte_end"]].decode(),
        )
        for row in rows
    )
