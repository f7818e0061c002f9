"""Stage 2: bytes to blocks, body and hidden texts, in a sandboxed child.

Fingerprint: digest of the bytes and the parser's version. Where a docling-serve reads pages, a
document that may not leave is read here. A body that a model wrote anew which is not asked any more
is parsed again.
"""

from __future__ import annotations

import time
from dataclasses import asdict

from kb_resources.model import Refusal, Stage, StageReport
from kb_resources.parse import READ_BY_SERVE
from kb_resources.stages import common, outward
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.store import documents, versions
from kb_resources.store.documents import DocumentRow

STAGE = Stage.PARSE
_MOST_PAGES = 200


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Parse one version."""
    started = time.perf_counter()
    to = caps.parse_at if row.media_type in READ_BY_SERVE else None
    kept = to is not None and not outward.may_leave(caps, row, to)
    mark = fingerprint(
        row.digest, row.media_type, row.name, caps.versions.parser, *(("here",) if kept else ())
    )
    known = common.known_result(caps, row, STAGE, mark)
    if known and not common.converted_otherwise(caps, row):
        return common.unchanged(STAGE, row, known, started)
    caps.count("parsed")
    data = caps.blobs(row.scope).get(row.digest or "")
    if to is not None:
        kept = not outward.write_down(
            caps, row, to, purpose="parse", digest=row.digest or "", size=len(data)
        )
    parsed = caps.parse(data, row.media_type or "", row.name or "", here=kept)
    with caps.database.transaction("pipeline") as conn:
        documents.hold(conn, row)
        if isinstance(parsed, Refusal):
            return common.finish(
                conn, caps, STAGE, row, started, fingerprint=mark, output="", end=parsed
            )
        body_digest = versions.save_parsed(conn, row, parsed)
        coverage = parsed.coverage
        return common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
            output=fingerprint(body_digest, parsed.raw_text, parsed.hidden, parsed.title),
            counts={
                "blocks": len(parsed.blocks),
                "body_bytes": len(parsed.body.encode()),
                "pages": coverage.pages,
                "pages_with_text": coverage.pages_with_text,
                "pages_empty": coverage.pages - coverage.pages_with_text,
                "pages_ocr": coverage.pages_ocr,
                "tables": coverage.tables,
                "tables_rebuilt": sum(sure < 1 for sure in coverage.table_confidences),
                "hidden_texts": len(parsed.hidden),
                "removed_lines": len(coverage.removed_lines),
                "replacement_share": coverage.replacement_share,
            },
            details={
                "title": parsed.title,
                "parser": parsed.parser,
                "warnings": list(coverage.warnings),
                "pages_needing_ocr": list(coverage.pages_needing_ocr),
                "recognised": [asdict(page) for page in coverage.recognised[:_MOST_PAGES]],
            },
        )
