"""Stage 7: publish a cleared, chunked, embedded version, in one transaction.

The transaction closes the version that held before. The retrieval tables refuse on their own
whatever is not cleared. Fingerprint: the embed stage's output, analyzer, readers, title.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb_resources.model import Chunk, Stage, StageReport
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.stages.common import Made, version_key
from kb_resources.stages.group import Mark, Results, Step
from kb_resources.store import documents, passages, staging, vectors, versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.INDEX


def _look(
    _conn: Conn, caps: Capabilities, row: DocumentRow, results: Results
) -> Mark | StageReport:
    if not row.cleared:
        return common.not_cleared(STAGE, row)
    embedded = results.get(Stage.EMBED)
    if embedded is None:
        return common.refused(
            STAGE, row, "It is not embedded yet. Run the embed stage for it first."
        )
    mark = fingerprint(
        embedded.output, caps.versions.analyzer, row.audiences, row.title, row.language
    )
    return Mark(mark, again=not row.current)


def _load(conn: Conn, rows: Sequence[DocumentRow]) -> Mapping[int, tuple[Chunk, ...]]:
    return staging.stage_again(conn, [version_key(row) for row in rows])


def _work(
    caps: Capabilities, row: DocumentRow, mark: Mark, chunks: tuple[Chunk, ...] | None
) -> Made:
    caps.count("indexed")
    return Made(
        row,
        mark.fingerprint,
        output=fingerprint(mark.fingerprint),
        product=[caps.lexical(chunk, row.language or "und") for chunk in versions.there(chunks)],
    )


def _write(conn: Conn, caps: Capabilities, made: Sequence[Made]) -> Mapping[int, Exception]:
    # Scopes in one order: a put holds its scope's lexicon until all are written.
    made = sorted(made, key=lambda each: (each.row.scope_id, each.row.document_key))
    # Who may read it, and which model is live, may have been decided anew since.
    now = {row.key: row for row in documents.load(conn, [each.row.key for each in made])}
    model_of = {key: caps.versions.model_of(row) for key, row in now.items()}
    keys = {model: vectors.model_key(conn, model) for model in sorted(set(model_of.values()))}
    outcomes = passages.put_versions(
        conn,
        [
            passages.VersionPut(
                version_key(each.row),
                valid_from=each.row.requested_valid_from or caps.clock(),
                audiences=now[each.row.key].audiences,
                lexical=each.product,
                model_id=keys[model_of[each.row.key]],
            )
            for each in made
        ],
    )
    refused: dict[int, Exception] = {}
    for each, outcome in zip(made, outcomes, strict=True):
        if isinstance(outcome, Exception):
            refused[each.row.document_key] = outcome
        else:
            each.counts = {"passages": outcome.passages}
            each.details = {"put": outcome.state, "model": model_of[each.row.key]}
    return refused


STEP = Step(STAGE, _look, _work, _write, load=_load, reads=(Stage.EMBED,))
