"""Stage 3: is the visible text in a language this scope accepts?

Fingerprint: body, detector, allowed languages, the caller's hint. A refused version is purged of
every text; digest and reason stay.
"""

from __future__ import annotations

import time

from kb_resources.language import Detection
from kb_resources.model import Refusal, Stage, StageReport
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.store import documents, staging, versions
from kb_resources.store.documents import DocumentRow

STAGE = Stage.LANGUAGE


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Tell the language of one version and admit or refuse it."""
    started = time.perf_counter()
    allowed = sorted(row.settings.get("languages", ()))
    mark = fingerprint(row.body_digest, caps.versions.detector, allowed, row.language_hint)
    if known := common.known_result(caps, row, STAGE, mark):
        return common.unchanged(STAGE, row, known, started)
    caps.count("detected")
    with caps.database.transaction("pipeline") as conn:
        body = versions.load_parsed(conn, common.version_key(row)).body
    detection = _stated(row.language_hint) if row.language_hint else caps.detect(body)
    admitted = caps.admit(detection, allowed)
    end = admitted if isinstance(admitted, Refusal) else None
    with caps.database.transaction("pipeline") as conn:
        documents.hold(conn, row)
        versions.set_language(conn, common.version_key(row), detection.label, detection.confidence)
        made = common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
            output=detection.label,
            counts={"confidence": round(detection.confidence, 4)},
            details={
                "language": detection.label,
                "stated": bool(row.language_hint),
                "warnings": ["The language could not be told; accepted as undetermined."]
                if detection.label == "und"
                else [],
            },
            end=end,
        )
        if end is not None:
            versions.purge_texts(conn, row)
            staging.forget_after(conn, row, Stage.PARSE, inclusive=True, sparing=STAGE)
    if end is not None:
        common.drop_bytes(caps, row)
    return made


def _stated(language: str) -> Detection:
    """The caller named the language; nothing was detected."""
    return Detection(label=language, confidence=1.0, script="", segments=())
