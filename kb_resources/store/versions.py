"""Versions: their bytes' digest, what parsing made of them, verdict and findings.

Belongs here: rows of one version inside the caller's transaction. What does not: documents,
retrieval rows, blobs. Verdicts go through `kb.record_verdict`; the pipeline role may not update
the columns (postgresql.org/docs, "GRANT", column privileges).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from kb_resources.errors import IntegrityError
from kb_resources.model import Finding, HiddenText, ParsedDocument, Severity, Verdict, content_hash
from kb_resources.store import codec
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


def add(
    conn: Conn, row: DocumentRow, *, digest: str, media_type: str, size_bytes: int, name: str
) -> tuple[int, int, bool]:
    """The version of these bytes: key, number, and whether it is new.

    Bytes that the document held before give their old number again.
    """
    given = {
        "document_key": row.document_key,
        "scope_id": row.scope_id,
        "digest": digest,
        "media_type": media_type,
        "size_bytes": size_bytes,
        "name": codec.storable(name),
    }
    made = conn.execute(sql("add_version"), given).fetchone()
    found = made or conn.execute(sql("find_version"), given).fetchone()
    if found is None:
        raise IntegrityError("A version was neither added nor found.")
    conn.execute(sql("set_latest_version"), {"document_key": row.document_key, "version": found[1]})
    return found[0], found[1], made is not None


def save_parsed(
    conn: Conn, row: DocumentRow, parsed: ParsedDocument, *, converted_by: str | None = None
) -> str:
    """Store body, blocks and the scan's input; returns the body's digest.

    Args:
        conn: inside a transaction.
        row: whose newest version it is.
        parsed: what to store.
        converted_by: the model that wrote the body anew, None where parsing gave it.
    """
    body = codec.storable(parsed.body)
    if body != parsed.body:
        raise IntegrityError(
            "The parser left characters in the body that cannot be stored.",
            next_step="Report the document; its parser must replace U+0000 and lone surrogates.",
        )
    digest = content_hash(body)
    key = {"version_key": row.version_key, "scope_id": row.scope_id}
    conn.execute(
        sql("set_version_parsed"),
        key
        | {
            "body_digest": digest,
            "title": codec.storable(parsed.title),
            "converted_by": converted_by,
        },
    )
    conn.execute(
        sql("save_parsed"),
        key
        | {
            "body": body,
            "blocks": Jsonb(codec.storable_json(codec.blocks_to_json(parsed.blocks))),
            "pages": Jsonb(codec.pages_to_json(parsed.pages)),
            "coverage": Jsonb(codec.coverage_to_json(parsed.coverage)),
            "metadata": Jsonb(codec.storable_json(parsed.metadata)),
            "parser": parsed.parser,
        },
    )
    conn.execute(
        sql("save_extraction"),
        key
        | {
            "raw_text": None if parsed.raw_text == body else codec.storable(parsed.raw_text),
            "hidden": Jsonb(codec.hidden_to_json(parsed.hidden)),
        },
    )
    return digest


def load_parsed(conn: Conn, version_key: int) -> ParsedDocument:
    """What parsing made of the version; IntegrityError where nothing is stored."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(sql("load_parsed"), {"version_key": version_key}).fetchone()
    if row is None:
        raise IntegrityError(
            "The version has no parsed text.", next_step="Run the parse stage for it first."
        )
    return codec.parsed_from_row(row)


def load_extraction(conn: Conn, version_key: int) -> tuple[str, tuple[HiddenText, ...]]:
    """Raw visible text and hidden texts of the version."""
    row = conn.execute(sql("load_extraction"), {"version_key": version_key}).fetchone()
    if row is None:
        raise IntegrityError(
            "The version has no raw extraction.", next_step="Run the parse stage for it first."
        )
    return row[0], codec.hidden_from_json(row[1])


def record_verdict(
    conn: Conn,
    row: DocumentRow,
    verdict: Verdict,
    findings: tuple[Finding, ...],
    *,
    rule_pack: str,
    actor: str,
) -> None:
    """Store verdict and findings for exactly the bytes and body the row names."""
    conn.execute(
        sql("record_verdict"),
        {
            "version_key": row.version_key,
            "verdict": verdict.value,
            "digest": row.digest,
            "body_digest": row.body_digest,
            "rule_pack": rule_pack,
            "actor": actor,
            "findings": Jsonb([codec.storable_json(asdict(finding)) for finding in findings]),
        },
    )


def load_findings(conn: Conn, version_key: int) -> tuple[Finding, ...]:
    """Findings of the version's newest scan."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(sql("load_findings"), {"version_key": version_key}).fetchall()
    return tuple(Finding(**{**row, "severity": Severity(row["severity"])}) for row in rows)


def set_language(conn: Conn, version_key: int, language: str, confidence: float) -> None:
    """Store the detected language (`und` when it cannot be told)."""
    conn.execute(
        sql("set_version_language"),
        {"version_key": version_key, "language": language, "confidence": confidence},
    )


def set_state(conn: Conn, version_key: int, state: str | None, reason: str = "") -> None:
    """Store how the version ended."""
    conn.execute(
        sql("set_version_state"),
        {"version_key": version_key, "state": state, "reason": reason[:2000]},
    )


def purge_texts(conn: Conn, row: DocumentRow) -> bool:
    """Delete every text of the version; True when its blob may go too."""
    given: dict[str, Any] = {
        "version_key": row.version_key,
        "scope_id": row.scope_id,
        "digest": row.digest,
    }
    conn.execute(sql("purge_texts"), given)
    used = conn.execute(sql("blob_still_used"), given).fetchone()
    return not (used and used[0])
