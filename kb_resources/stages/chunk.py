"""Stage 5: cut a cleared body into chunks that can be cited.

Fingerprint: body and blocks (by the parse stage's output), title, chunker and its options, the
model whose tokenizer counts, what the scope says about cutting.
"""

from __future__ import annotations

import time

from kb_resources.model import Chunk, DocumentState, Refusal, Stage, StageReport, Verdict
from kb_resources.stages import common
from kb_resources.stages.capabilities import Capabilities, fingerprint, scope_chunking
from kb_resources.store import documents, staging, versions
from kb_resources.store.documents import DocumentRow
from kb_resources.store.scopes import ScopeSettings

STAGE = Stage.CHUNK


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Chunk one cleared version."""
    started = time.perf_counter()
    refused_before = row.version_state == DocumentState.TOO_LARGE and row.verdict == Verdict.CLEAN
    if not row.cleared and not refused_before:
        return common.not_cleared(STAGE, row, started)
    if common.converted_otherwise(caps, row):
        return common.of_another_model(STAGE, row, started)
    settings = ScopeSettings.from_json(row.settings)
    model = caps.versions.model_of(row)
    named = {
        each.partition("@")[0] for each in (model, row.beside_model or "", caps.versions.model_id)
    }
    if settings.model and settings.model not in named:
        return common.report(
            STAGE,
            row,
            started,
            worked=False,
            refused=True,
            reason=f"The scope is set to the model {settings.model}, this line embeds with "
            f"{model.partition('@')[0]}. Set KB_MODEL, or change the scope's model.",
        )
    mark = fingerprint(
        row.body_digest, row.title, caps.versions.chunker_of(row), *scope_chunking(row.settings)
    )
    if known := common.known_result(caps, row, STAGE, mark):
        return common.unchanged(STAGE, row, known, started)
    caps.count("chunked")
    if refused_before:
        row = _open_again(caps, row)
    with caps.database.transaction("pipeline") as conn:
        parsed = versions.load_parsed(conn, common.version_key(row))
    chunks = caps.chunk(parsed, row.document_id, settings, model)
    end = _too_many(len(chunks), caps.max_chunks)
    with caps.database.transaction("pipeline") as conn:
        documents.hold(conn, row)
        staging.replace_chunks(conn, row, () if end else chunks)
        return common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
            output=fingerprint([(c.passage_id, c.embed_hash, c.byte_start) for c in chunks]),
            counts=_counts(chunks),
            details=_details(caps, row, settings),
            end=end,
        )


def _open_again(caps: Capabilities, row: DocumentRow) -> DocumentRow:
    """A version that only the limit kept out is tried again when limit or cutting changed."""
    with caps.database.transaction("pipeline") as conn:
        documents.hold(conn, row)
        versions.set_state(conn, common.version_key(row), None)
        return documents.load_one(conn, row.key)


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
