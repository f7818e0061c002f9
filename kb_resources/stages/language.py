"""Stage 3: is the visible text in a language this scope accepts?

Fingerprint: body, detector, allowed languages, the caller's hint. A refused version is purged of
every text; digest and reason stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb_resources.language import Detection
from kb_resources.model import Refusal, Stage
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.stages.common import Made, version_key
from kb_resources.stages.group import Mark, Results, Step
from kb_resources.store import versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.LANGUAGE


def _look(_conn: Conn, caps: Capabilities, row: DocumentRow, _results: Results) -> Mark:
    return Mark(
        fingerprint(row.body_digest, caps.versions.detector, _allowed(row), row.language_hint)
    )


def _allowed(row: DocumentRow) -> list[str]:
    return sorted(row.settings.get("languages", ()))


def _load(conn: Conn, rows: Sequence[DocumentRow]) -> Mapping[int, Any]:
    return versions.load_bodies(conn, [version_key(row) for row in rows])


def _work(caps: Capabilities, row: DocumentRow, mark: Mark, body: str | None) -> Made:
    body = versions.there(body)
    caps.count("detected")
    detection = _stated(row.language_hint) if row.language_hint else caps.detect(body)
    admitted = caps.admit(detection, _allowed(row))
    unsure = ["The language could not be told; accepted as undetermined."]
    return Made(
        row,
        mark.fingerprint,
        output=detection.label,
        counts={"confidence": round(detection.confidence, 4)},
        details={
            "language": detection.label,
            "stated": bool(row.language_hint),
            "warnings": unsure if detection.label == "und" else [],
        },
        end=admitted if isinstance(admitted, Refusal) else None,
        product=(detection.label, detection.confidence),
    )


def _write(conn: Conn, _caps: Capabilities, made: Sequence[Made]) -> None:
    versions.set_languages(conn, {version_key(each.row): each.product for each in made})
    for each in made:
        if each.end is not None:
            common.purge(conn, each.row, STAGE)


def _after(caps: Capabilities, made: Made) -> None:
    if made.end is not None:
        common.drop_bytes(caps, made.row)


def _stated(language: str) -> Detection:
    """The caller named the language; nothing was detected."""
    return Detection(label=language, confidence=1.0, script="", segments=())


STEP = Step(STAGE, _look, _work, _write, load=_load, after=_after)
