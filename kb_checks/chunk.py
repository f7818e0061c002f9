"""Checks after chunk: can every chunk be cited, and does it fit the model?"""

from __future__ import annotations

from collections.abc import Sequence

from kb_checks import schemas, spans
from kb_checks.gate import cleared
from kb_checks.model import Case, Check, Outcome, each
from kb_resources.model import Chunk, Stage


def _chunks(case: Case) -> tuple[Chunk, ...]:
    return tuple(case.facts.get("chunks", ()))


def _has_no_chunks(case: Case) -> bool:
    """Whether it was not cut at all: the gate held it, or it was turned away (`too_large`)."""
    return case.report.refused or case.report.state is not None


def _spans_rebuild_text(case: Case) -> Outcome | None:
    if _has_no_chunks(case):
        return None
    chunks = _chunks(case)
    problems = list(spans.problems(case.facts.get("body", ""), case.facts.get("pages", ()), chunks))
    return Outcome(
        passed=not problems and bool(chunks),
        numbers={"chunks": len(chunks)},
        problems=problems or ([] if chunks else [{"what": "no chunk", "where": "document"}]),
    )


def _tokens_within_limit(case: Case) -> Outcome | None:
    if _has_no_chunks(case):
        return None
    # A scope's own limit, where it has one, is in what the stage reported.
    limit = int(case.report.details.get("chunk_tokens") or case.facts["token_limit"])
    chunks = _chunks(case)
    problems = [
        {"what": f"{chunk.token_count} tokens", "where": f"chunk {chunk.ordinal}"}
        for chunk in chunks
        if not 0 < chunk.token_count <= limit
    ]
    counts = [chunk.token_count for chunk in chunks]
    return Outcome(
        passed=not problems,
        numbers={"max_tokens": max(counts, default=0)},
        problems=problems,
    )


def _schema(cases: Sequence[Case]) -> Sequence[Outcome | None]:
    rows = [
        {
            "document": str(case.key),
            "ordinal": chunk.ordinal,
            "passage_id": chunk.passage_id,
            "page": chunk.page,
            "byte_start": chunk.byte_start,
            "byte_length": chunk.byte_end - chunk.byte_start,
            "char_start": chunk.char_start,
            "char_length": chunk.char_end - chunk.char_start,
            "token_count": chunk.token_count,
            "content_hash": chunk.content_hash,
            "embed_hash": chunk.embed_hash,
        }
        for case in cases
        for chunk in _chunks(case)
    ]
    found = schemas.problems_by_document(schemas.chunks(), rows) if rows else {}
    return [
        None
        if _has_no_chunks(case)
        else Outcome(
            passed=str(case.key) not in found,
            numbers={"failures": len(found.get(str(case.key), ()))},
            problems=found.get(str(case.key), ()),
        )
        for case in cases
    ]


CHECKS = (
    cleared(Stage.CHUNK),
    Check(
        stage=Stage.CHUNK,
        name="spans_rebuild_text",
        description=(
            "For every chunk the byte span in the body and the character span in the page text "
            "give exactly its text; spans are in order and disjoint; no chunk is blank."
        ),
        next_step="Keep the document and report it: a citation from it could point elsewhere.",
        severity="ERROR",
        judge=each(_spans_rebuild_text),
    ),
    Check(
        stage=Stage.CHUNK,
        name="tokens_within_limit",
        description=(
            "Every chunk with its context, prefix and special tokens fits the limit, counted by "
            "the embedding model's own tokenizer."
        ),
        next_step="Run the document again from chunk; report it if the limit is still passed.",
        severity="ERROR",
        judge=each(_tokens_within_limit),
    ),
    Check(
        stage=Stage.CHUNK,
        name="schema",
        description="The staged chunks fit their schema: columns, ranges, unique passage ids.",
        next_step="Keep the document and report the rows named.",
        severity="ERROR",
        judge=_schema,
    ),
)
