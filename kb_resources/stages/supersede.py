"""Stage 8: what follows from a publication: others end, events are written, the state is final.

The version that the document itself held before was closed by `index`; here the documents that
the caller named with `supersedes` end too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb_resources.model import DocumentState, Stage, StageReport
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.stages.common import Made, version_key
from kb_resources.stages.group import Mark, Results, Step
from kb_resources.store import documents, passages, selections, staging, versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.SUPERSEDE
_BEGAN = ("new", "replaced", "reinstated")
"""What `index` did where the version began to hold with it."""


def _look(conn: Conn, caps: Capabilities, row: DocumentRow, results: Results) -> Mark | StageReport:
    if not row.cleared:
        return common.not_cleared(STAGE, row)
    indexed = results.get(Stage.INDEX)
    if indexed is None or not row.current:
        return common.refused(
            STAGE, row, "It is not published yet. Run the index stage for it first."
        )
    mark = Mark(
        fingerprint(indexed.output, row.supersedes), again=row.state != DocumentState.INDEXED
    )
    known = results.get(STAGE)
    if known is not None and known.fingerprint == mark.fingerprint and not mark.again:
        settled = caps.versions.settled(row, row.digest or "")
        if row.settled_fingerprint != settled:
            documents.touch_settled(conn, row, settled)
    return mark


def _load(conn: Conn, rows: Sequence[DocumentRow]) -> Mapping[int, staging.StageResult]:
    keys = [version_key(row) for row in rows]
    return {key: found for (key, _), found in staging.results(conn, keys, Stage.INDEX).items()}


def _work(_caps: Capabilities, row: DocumentRow, mark: Mark, indexed: staging.StageResult) -> Made:
    return Made(row, mark.fingerprint, output=fingerprint(mark.fingerprint), product=indexed)


def _write(conn: Conn, caps: Capabilities, made: Sequence[Made]) -> None:
    # Told once: other readers or rows of the same version end nothing anew.
    began = [each.row for each in made if each.product.details.get("put") in _BEGAN]
    ended = selections.versions_ended_by(conn, began) if began else {}
    events: list[documents.Event] = []
    for each in made:
        row = each.row
        others = _end_others(conn, caps, row)
        numbers = ended.get(version_key(row), [])
        events += [
            documents.Event(
                row, "superseded", other.version, {"by": row.document_id}, other.document_key
            )
            for other in others
        ]
        events += [
            documents.Event(row, "superseded", number, {"by_version": row.latest_version})
            for number in numbers
        ]
        events.append(documents.Event(row, "indexed", row.latest_version, {}))
        each.counts = {
            "superseded": len(numbers) + len(others),
            "passages": each.product.counts["passages"],
        }
        each.details = {
            "superseded_versions": numbers,
            "superseded_documents": [other.document_id for other in others],
        }
    documents.append_events(conn, events, actor=caps.actor)
    versions.settle(
        conn, [(each.row, caps.versions.settled(each.row, each.row.digest or "")) for each in made]
    )


def _end_others(
    conn: Conn, caps: Capabilities, row: DocumentRow
) -> list[selections.CurrentVersion]:
    """End what the caller said that the document takes the place of."""
    if not row.supersedes:
        return []
    others = [
        other
        for other in selections.current_of(conn, row.scope_id, row.supersedes)
        if other.document_key != row.document_key
    ]
    for other in others:
        passages.end_validity(conn, other.version_key, row.requested_valid_from or caps.clock())
    return others


STEP = Step(STAGE, _look, _work, _write, load=_load, reads=(Stage.INDEX,))
