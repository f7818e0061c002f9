"""What the asset checks look at, read from the ledger for one document and stage.

Belongs here: gathering. What does not: judging (`kb_checks`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kb_resources.model import AnyStage, Stage
from kb_resources.store import staging, versions
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.sql import sql


def at(conn: Conn, stage: AnyStage, row: DocumentRow) -> dict[str, Any]:
    """Facts by name; texts appear only as far as the verdict allows.

    Always: state, verdict, cleared, title, origin. With a version, by stage: `coverage` and
    `preview` (parse), `findings` (scan), `body`, `pages`, `chunks` (chunk, embed), `index` (index,
    supersede).
    """
    found: dict[str, Any] = {
        "document_id": row.document_id,
        "scope": row.scope,
        "state": row.state,
        "reason": row.reason,
        "version": row.latest_version,
        "digest": row.digest,
        "title": row.title,
        "origin": row.origin,
        "source_uri": row.source_uri,
        "language": row.language,
        "verdict": row.verdict,
        "cleared": bool(row.cleared),
        "current": row.current,
    }
    if row.version_key is None:
        return found
    given = {"version_key": row.version_key}
    if stage is Stage.PARSE:
        shown = conn.execute(sql("show_coverage"), given).fetchone()
        if shown is not None:
            found |= {"coverage": shown[0], "metadata": shown[1], "preview": shown[3]}
    elif stage is Stage.SCAN:
        found["findings"] = [asdict(item) for item in versions.load_findings(conn, row.version_key)]
    elif stage in (Stage.CHUNK, Stage.EMBED) and row.cleared:
        parsed = versions.load_parsed(conn, row.version_key)
        found["body"] = parsed.body
        found["pages"] = parsed.pages
        found["chunks"] = staging.load_chunks(conn, row.version_key, parsed.body)
    elif stage in (Stage.INDEX, Stage.SUPERSEDE):
        counts = conn.execute(sql("published_counts"), given).fetchone()
        names = (
            "passages",
            "lexical",
            "vectors",
            "models",
            "uncleared",
            "current_versions",
            "worst_norm_error",
        )
        found["index"] = dict(zip(names, counts or (0,) * len(names), strict=True))
    return found
