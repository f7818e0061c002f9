"""Stage between scan and chunk, off by default: a model writes the body as clean Markdown.

Only a cleared version is sent, and what comes back is a text like any other: kept where it says
word for word what parsing found, scanned before it goes on. Whatever else comes back leaves the
deterministic parse as it is, with a warning. Fingerprint: bytes, parsed body, model and prompt,
whether it may leave; once it is converted: the body it has, model and prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kb_resources.generate import Converter, faithfulness, unfenced
from kb_resources.model import ModelStage, ParsedDocument, Refusal, StageReport
from kb_resources.stages import common, outward
from kb_resources.stages.asking import BLOCKED, ask
from kb_resources.stages.capabilities import Asking, Capabilities, fingerprint
from kb_resources.store import documents, locks, versions
from kb_resources.store.documents import DocumentRow

STAGE = ModelStage.CONVERT
CONVERTED = "converted"
NOT_NEEDED = "not_needed"
_WHY = {
    "too_long": "it is longer than a reply may be (KB_GENERATE_REPLY_TOKENS)",
    BLOCKED: "its class keeps it from that machine (kb audit classify)",
    "cut_off": "the reply was cut off",
    "refused": "the model refused",
    "empty": "the reply was empty",
    "unreadable": "the reply could not be read as Markdown",
    "unfaithful": "the reply does not say what the document says",
}

Judge = Callable[[Capabilities, DocumentRow], StageReport]
"""The scan: gives the converted body its own verdict."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of asking.

    Attributes:
        outcome: `converted`, or why not.
        document: the conversion, None where the parse stays.
        again: whether the next run asks again.
        measured: numbers for the report.
    """

    outcome: str
    document: ParsedDocument | None = None
    again: bool = False
    measured: dict[str, float] = field(default_factory=dict)


def run(caps: Capabilities, row: DocumentRow, judge: Judge) -> StageReport:
    """Convert one cleared version, and have the result scanned."""
    started = time.perf_counter()
    asking: Asking[Converter] = caps.asking[STAGE]
    if not row.cleared:
        return common.not_cleared(STAGE, row)
    if common.converted_otherwise(caps, row):
        return common.of_another_model(STAGE, row)
    if row.converted_by == asking.name:
        mark = fingerprint(row.body_digest, asking.name)
        if known := common.known_result(caps, row, STAGE, mark):
            return common.unchanged(STAGE, row, known, started)
        # The run that converted it ended before it said so, or it was held and released.
        return _finish(caps, row, started, mark, _Tried(CONVERTED))
    barred = not outward.may_leave(caps, row, asking.at)
    mark = fingerprint(row.digest, row.body_digest, asking.name, barred)
    if known := common.known_result(caps, row, STAGE, mark):
        return common.unchanged(STAGE, row, known, started)
    with caps.database.transaction("pipeline") as conn:
        document = versions.load_parsed(conn, common.version_key(row))
        raw_text, hidden = versions.load_extraction(conn, common.version_key(row))
    document = replace(document, raw_text=raw_text, hidden=hidden)
    tried = _try(caps, row, asking, document)
    if tried.document is None:
        return _finish(caps, row, started, "" if tried.again else mark, tried)
    caps.count(CONVERTED)
    with caps.database.transaction("pipeline") as conn:
        locks.hold(conn, row)
        versions.save_parsed(conn, row, tried.document, converted_by=asking.name)
        row = documents.load_one(conn, row.key)
    judged = judge(caps, row)
    if not judged.goes_on:
        return replace(
            judged, stage=STAGE, details=_details(asking, tried) | {"scan": judged.details}
        )
    with caps.database.transaction("pipeline") as conn:
        row = documents.load_one(conn, row.key)
    return _finish(caps, row, started, fingerprint(row.body_digest, asking.name), tried)


def _try(
    caps: Capabilities, row: DocumentRow, asking: Asking[Converter], document: ParsedDocument
) -> _Tried:
    """Ask, and weigh the reply against what parsing found."""
    converter = asking.call
    request = converter.request(document, caps.blobs(row.scope).get(row.digest or ""))
    if isinstance(request, str):
        return _Tried(request)
    answer = ask(caps, row, STAGE, asking, converter.model, request)
    if answer.text is None:
        return _Tried(answer.outcome, again=answer.asked_again and answer.outcome != BLOCKED)
    name = f"{row.document_id}.md"
    read = caps.parse(unfenced(answer.text).encode(), "text/markdown", name, here=True)
    if isinstance(read, Refusal):
        return _Tried("unreadable")
    measure = faithfulness(document.body, document.raw_text, read.body)
    if not measure.holds:
        return _Tried("unfaithful", measured=measure.to_json())
    return _Tried(CONVERTED, _joined(document, read, asking.name), measured=measure.to_json())


def _joined(parsed: ParsedDocument, read: ParsedDocument, name: str) -> ParsedDocument:
    """The conversion's body with what the source alone can say; the scan reads both texts."""
    return replace(
        parsed,
        body=read.body,
        blocks=read.blocks,
        pages=(),
        raw_text=f"{read.raw_text}\n\n{parsed.raw_text}",
        hidden=(*read.hidden, *parsed.hidden),
        parser=f"{parsed.parser}, {name}",
    )


def _finish(
    caps: Capabilities, row: DocumentRow, started: float, mark: str, tried: _Tried
) -> StageReport:
    with caps.database.transaction("pipeline") as conn:
        locks.hold(conn, row)
        return common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
            output=row.body_digest or "",
            counts={CONVERTED: float(tried.outcome == CONVERTED), **tried.measured},
            details=_details(caps.asking[STAGE], tried),
        )


def _details(asking: Asking[Converter], tried: _Tried) -> dict[str, Any]:
    warnings = []
    if tried.outcome not in (CONVERTED, NOT_NEEDED):
        why = _WHY.get(tried.outcome, f"no reply came ({tried.outcome}); the next run asks again")
        warnings.append(f"The deterministic parse is kept: {why}.")
    return {"model": asking.name, "outcome": tried.outcome, "warnings": warnings}
