"""Stage 2: bytes to blocks, body and hidden texts, in a sandboxed child.

Fingerprint: digest of the bytes and the parser's version. Where a docling-serve reads pages, a
document that may not leave is read here. A body that a model wrote anew which is not asked any more
is parsed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kb_resources.answer.disclosure import Destination
from kb_resources.model import ParsedDocument, Refusal, Stage
from kb_resources.parse import READ_BY_SERVE
from kb_resources.stages import common, outward
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.stages.common import Made
from kb_resources.stages.group import Mark, Results, Step
from kb_resources.store import versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.PARSE
_MOST_PAGES = 200


def _look(_conn: Conn, caps: Capabilities, row: DocumentRow, _results: Results) -> Mark:
    to = _elsewhere(caps, row)
    kept = to is not None and not outward.may_leave(caps, row, to)
    mark = fingerprint(
        row.digest, row.media_type, row.name, caps.versions.parser, *(("here",) if kept else ())
    )
    return Mark(mark, again=common.converted_otherwise(caps, row))


def _elsewhere(caps: Capabilities, row: DocumentRow) -> Destination | None:
    return caps.parse_at if row.media_type in READ_BY_SERVE else None


def _work(caps: Capabilities, row: DocumentRow, mark: Mark, _loaded: Any) -> Made:
    caps.count("parsed")
    data = caps.blobs(row.scope).get(row.digest or "")
    to = _elsewhere(caps, row)
    kept = to is not None and not outward.write_down(
        caps, row, to, purpose="parse", digest=row.digest or "", size=len(data)
    )
    parsed = caps.parse(data, row.media_type or "", row.name or "", here=kept)
    if isinstance(parsed, Refusal):
        return Made(row, mark.fingerprint, end=parsed)
    return _made(row, mark, parsed)


def _made(row: DocumentRow, mark: Mark, parsed: ParsedDocument) -> Made:
    coverage = parsed.coverage
    return Made(
        row,
        mark.fingerprint,
        output=fingerprint(
            versions.body_digest(parsed), parsed.raw_text, parsed.hidden, parsed.title
        ),
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
        product=parsed,
    )


def _write(conn: Conn, _caps: Capabilities, made: Sequence[Made]) -> None:
    versions.save_all_parsed(conn, [(m.row, m.product) for m in made if m.product is not None])


STEP = Step(STAGE, _look, _work, _write)
