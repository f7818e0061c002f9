"""Versions: their bytes' digest, what parsing made of them, verdict and findings.

Belongs here: rows of one version inside the caller's transaction. What does not: documents,
retrieval rows, blobs. Verdicts go through `kb.record_verdict`; the pipeline role may not update
the columns (postgresql.org/docs, "GRANT", column privileges).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

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
    return add_many(conn, [NewBytes(row, digest, media_type, size_bytes, name)])[row.document_key]


@dataclass(frozen=True, slots=True)
class NewBytes:
    """Bytes that a document has now."""

    row: DocumentRow
    digest: str
    media_type: str
    size_bytes: int
    name: str


def add_many(conn: Conn, given: Sequence[NewBytes]) -> dict[int, tuple[int, int, bool]]:
    """`add` for several documents, by document key."""
    rows = conn.execute(
        sql("add_versions"),
        {
            "document_keys": [each.row.document_key for each in given],
            "scope_ids": [each.row.scope_id for each in given],
            "digests": [each.digest for each in given],
            "media_types": [each.media_type for each in given],
            "sizes": [each.size_bytes for each in given],
            "names": [codec.storable(each.name) for each in given],
        },
    ).fetchall()
    return {key: (version_key, number, new) for key, version_key, number, new in rows}


def save_parsed(
    conn: Conn, row: DocumentRow, parsed: ParsedDocument, *, converted_by: str | None = None
) -> None:
    """Store body, blocks and the scan's input.

    Args:
        conn: inside a transaction.
        row: whose newest version it is.
        parsed: what to store.
        converted_by: the model that wrote the body anew, None where parsing gave it.
    """
    save_all_parsed(conn, [(row, parsed)], converted_by=converted_by)


def save_all_parsed(
    conn: Conn,
    given: Sequence[tuple[DocumentRow, ParsedDocument]],
    *,
    converted_by: str | None = None,
) -> None:
    """`save_parsed` for several documents."""
    values = [_parsed_values(row, parsed) | {"converted_by": converted_by} for row, parsed in given]
    with conn.cursor() as cursor:
        for statement in ("set_version_parsed", "save_parsed", "save_extraction"):
            cursor.executemany(sql(statement), values)


def body_digest(parsed: ParsedDocument) -> str:
    """SHA-256 hex of the body; IntegrityError where it cannot be stored."""
    if codec.storable(parsed.body) != parsed.body:
        raise IntegrityError(
            "The parser left characters in the body that cannot be stored.",
            next_step="Report the document; its parser must replace U+0000 and lone surrogates.",
        )
    return content_hash(parsed.body)


def _parsed_values(row: DocumentRow, parsed: ParsedDocument) -> dict[str, Any]:
    return {
        "version_key": row.version_key,
        "scope_id": row.scope_id,
        "body_digest": body_digest(parsed),
        "title": codec.storable(parsed.title),
        "body": parsed.body,
        "blocks": Jsonb(codec.storable_json(codec.blocks_to_json(parsed.blocks))),
        "pages": Jsonb(codec.pages_to_json(parsed.pages)),
        "coverage": Jsonb(codec.coverage_to_json(parsed.coverage)),
        "metadata": Jsonb(codec.storable_json(parsed.metadata)),
        "parser": parsed.parser,
        "raw_text": None if parsed.raw_text == parsed.body else codec.storable(parsed.raw_text),
        "hidden": Jsonb(codec.hidden_to_json(parsed.hidden)),
    }


def load_parsed(conn: Conn, version_key: int) -> ParsedDocument:
    """What parsing made of the version; IntegrityError where nothing is stored."""
    return there(load_all_parsed(conn, [version_key]).get(version_key))


def load_all_parsed(conn: Conn, version_keys: Sequence[int]) -> dict[int, ParsedDocument]:
    """What parsing made of the versions; without those that nothing is stored of."""
    with conn.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(sql("load_parsed"), {"version_keys": list(version_keys)}).fetchall()
    return {row["version_key"]: codec.parsed_from_row(row) for row in found}


def body_bytes(conn: Conn, version_keys: Sequence[int]) -> int:
    """Bytes of the versions' bodies together, in UTF-8."""
    row = conn.execute(sql("body_bytes"), {"version_keys": list(version_keys)}).fetchone()
    return int(row[0]) if row else 0


def load_bodies(conn: Conn, version_keys: Sequence[int]) -> dict[int, str]:
    """Bodies of the versions; without those that have none."""
    given = {"version_keys": list(version_keys)}
    return dict(conn.execute(sql("load_bodies"), given).fetchall())


Extraction = tuple[str, tuple[HiddenText, ...]]
"""Raw visible text and hidden texts."""


def load_extraction(conn: Conn, version_key: int) -> Extraction:
    """Raw visible text and hidden texts of the version; IntegrityError where nothing is stored."""
    return there(load_extractions(conn, [version_key]).get(version_key))


def load_extractions(conn: Conn, version_keys: Sequence[int]) -> dict[int, Extraction]:
    """Raw texts of the versions; without those that nothing is stored of."""
    found = conn.execute(sql("load_extraction"), {"version_keys": list(version_keys)}).fetchall()
    return {key: (raw_text, codec.hidden_from_json(hidden)) for key, raw_text, hidden in found}


_Stored = TypeVar("_Stored")


def there(stored: _Stored | None) -> _Stored:
    """What is stored of a version; IntegrityError where nothing is."""
    if stored is None:
        raise IntegrityError(
            "The version has no parsed text.", next_step="Run the parse stage for it first."
        )
    return stored


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
    set_languages(conn, {version_key: (language, confidence)})


def set_languages(conn: Conn, languages: Mapping[int, tuple[str, float]]) -> None:
    """`set_language` by version key."""
    conn.execute(
        sql("set_languages"),
        {
            "version_keys": list(languages),
            "languages": [language for language, _ in languages.values()],
            "confidences": [confidence for _, confidence in languages.values()],
        },
    )


def settle(conn: Conn, settled: Sequence[tuple[DocumentRow, str]]) -> None:
    """The documents' final state, and that of their newest versions: indexed, with fingerprints."""
    conn.execute(
        sql("settle_documents"),
        {
            "document_keys": [row.document_key for row, _ in settled],
            "version_keys": [row.version_key for row, _ in settled],
            "settled": [fingerprint for _, fingerprint in settled],
        },
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
