"""Stage 5: cut a cleared body into chunks that can be cited.

Fingerprint: body and blocks (by the parse stage's output), title, chunker and its options, the
model whose tokenizer counts, what the scope says about cutting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb_resources.model import (
    Chunk,
    DocumentState,
    ParsedDocument,
    Refusal,
    Stage,
    StageReport,
    Verdict,
)
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint, scope_chunking
from kb_resources.stages.common import Made, version_key
from kb_resources.stages.group import Mark, Results, Step
from kb_resources.store import staging, versions
from kb_resources.store.documents import Conn, DocumentRow
from kb_resources.store.scopes import ScopeSettings

STAGE = Stage.CHUNK


def _look(
    _conn: Conn, caps: Capabilities, row: DocumentRow, _results: Results
) -> Mark | StageReport:
    if not row.cleared and not _refused_before(row):
        return common.not_cleared(STAGE, row)
    if common.converted_otherwise(caps, row):
        return common.of_another_model(STAGE, row)
    settings = ScopeSettings.from_json(row.settings)
    model = caps.versions.model_of(row)
    named = {
        each.partition("@")[0] for each in (model, row.beside_model or "", caps.versions.model_id)
    }
    if settings.model and settings.model not in named:
        return common.refused(
            STAGE,
            row,
            f"The scope is set to the model {settings.model}, this line embeds with "
            f"{model.partition('@')[0]}. Set KB_MODEL, or change the scope's model.",
        )
    return Mark(
        fingerprint(
            row.body_digest, row.title, caps.versions.chunker_of(row), *scope_chunking(row.settings)
        )
    )


def _refused_before(row: DocumentRow) -> bool:
    """A version that only the limit kept out is tried again when limit or cutting changed."""
    return row.version_state == DocumentState.TOO_LARGE and row.verdict == Verdict.CLEAN


def _load(conn: Conn, rows: Sequence[DocumentRow]) -> Mapping[int, ParsedDocument]:
    return versions.load_all_parsed(conn, [version_key(row) for row in rows])


def _work(caps: Capabilities, row: DocumentRow, mark: Mark, parsed: ParsedDocument | None) -> Made:
    parsed = versions.there(parsed)
    caps.count("chunked")
    settings = ScopeSettings.from_json(row.settings)
    chunks = caps.chunk(parsed, row.document_id, settings, caps.versions.model_of(row))
    end = _too_many(len(chunks), caps.max_chunks)
    return Made(
        row,
        mark.fingerprint,
        output=fingerprint([(c.passage_id, c.embed_hash, c.byte_start) for c in chunks]),
        counts=_counts(chunks),
        details=_details(caps, row, settings),
        end=end,
        product=() if end else chunks,
    )


def _write(conn: Conn, _caps: Capabilities, made: Sequence[Made]) -> None:
    for each in made:
        if _refused_before(each.row):
            versions.set_state(conn, version_key(each.row), None)
    staging.replace_all_chunks(conn, [(each.row, each.product) for each in made])


def _too_many(count: int, limit: int) -> Refusal | None:
    if count <= limit:
        return None
    return Refusal(
        DocumentState.TOO_LARGE,
        f"It has {count:,} chunks; {limit:,} are allowed. Divide it, or raise KB_MAX_CHUNKS.",
        {"chunks": count, "max_chunks": limit},
    )


def _counts(chunks: tuple[Chunk, ...]) -> dict[str, float]:
    tokens = [chunk.token_count for chunk in chunks]
    return {"chunks": len(chunks), "tokens": sum(tokens), "max_tokens": max(tokens, default=0)}


def _details(caps: Capabilities, row: DocumentRow, settings: ScopeSettings) -> dict[str, object]:
    details: dict[str, object] = {
        "chunker": caps.versions.chunker_of(row),
        **dict(scope_chunking(settings.to_json())),
    }
    if warning := caps.counting_warning():
        details["counting_warning"] = warning
    return details


STEP = Step(STAGE, _look, _work, _write, load=_load)
