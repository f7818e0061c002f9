"""What stages leave for the next: results with their fingerprints, and staged chunks.

Belongs here: rows between two stages. What does not: the retrieval tables.
Bulk writes use COPY (psycopg documentation, "Using COPY TO and COPY FROM").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from kb_resources.model import ORDER, AnyStage, Chunk, StageReport, stage_of
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


@dataclass(frozen=True, slots=True)
class NewResult:
    """What a stage came to for the newest version of a document."""

    row: DocumentRow
    fingerprint: str
    output: str
    report: StageReport


def save_results(conn: Conn, stage: AnyStage, made: Sequence[NewResult]) -> None:
    """Store a stage's results; a new output forgets the results of all later stages."""
    if made:
        conn.execute(
            sql("save_stage_results"),
            {
                "stage": stage.value,
                "later": [later.value for later in ORDER[ORDER.index(stage) + 1 :]],
                "version_keys": [each.row.version_key for each in made],
                "scope_ids": [each.row.scope_id for each in made],
                "fingerprints": [each.fingerprint for each in made],
                "outputs": [each.output for each in made],
                "states": [each.report.state and each.report.state.value for each in made],
                "reasons": [each.report.reason for each in made],
                "counts": [Jsonb(dict(each.report.counts)) for each in made],
                "details": [Jsonb(storable_json(each.report.details)) for each in made],
                "durations": [each.report.duration_s for each in made],
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
    replace_all_chunks(conn, [(row, chunks)])


def replace_all_chunks(conn: Conn, staged: Sequence[tuple[DocumentRow, Sequence[Chunk]]]) -> None:
    """Stage several versions' chunks in place of those staged before."""
    keys = [row.version_key for row, _ in staged]
    conn.execute(sql("replace_staged_chunks"), {"version_keys": keys})
    path_literal = lru_cache(_path_literal)
    with conn.cursor() as cursor, cursor.copy(sql("copy_staged_chunks")) as copy:
        for row, chunk in ((row, chunk) for row, chunks in staged for chunk in chunks):
            copy.write_row(
                (
                    row.version_key,
                    chunk.ordinal,
                    row.scope_id,
                    chunk.passage_id,
                    storable(chunk.context),
                    path_literal(tuple(chunk.heading_path)),
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


def _path_literal(headings: tuple[str, ...]) -> str:
    """`text[]` as COPY reads it; made once for the passages of a section."""
    quoted = (storable(each).replace("\\", r"\\").replace('"', r"\"") for each in headings)
    return "{" + ",".join(f'"{each}"' for each in quoted) + "}"


def load_chunks(conn: Conn, version_key: int, body: str) -> tuple[Chunk, ...]:
    """The version's chunks, staged or published, with their texts cut from the body.

    Args:
        conn: inside a transaction.
        version_key: whose chunks.
        body: the version's body.
    """
    return _chunks(conn, {version_key: body})[version_key]


def stage_again(conn: Conn, version_keys: Sequence[int]) -> dict[int, tuple[Chunk, ...]]:
    """The versions' chunks, staged again where they are published and no longer staged."""
    given = {"version_keys": list(version_keys)}
    conn.execute(sql("restage_published"), given)
    return _chunks(conn, dict(conn.execute(sql("load_bodies"), given).fetchall()))


def _chunks(conn: Conn, bodies: Mapping[int, str]) -> dict[int, tuple[Chunk, ...]]:
    found: dict[int, list[dict[str, Any]]] = {key: [] for key in bodies}
    with conn.cursor(row_factory=dict_row) as cursor:
        for statement in ("load_staged_chunks", "load_published_chunks"):
            missing = [key for key, rows in found.items() if not rows]
            if missing:
                for row in cursor.execute(sql(statement), {"version_keys": missing}):
                    found[row.pop("version_key")].append(row)
    return {key: _cut(rows, bodies[key].encode()) for key, rows in found.items()}


def _cut(rows: Sequence[dict[str, Any]], body: bytes) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(
            **{**row, "heading_path": tuple(row["heading_path"])},
            text=body[row["byte_start"] : row["byte_end"]].decode(),
        )
        for row in rows
    )
