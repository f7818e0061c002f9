"""Every check finds the fault that it is for, and passes what is right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_checks.model import Case, Outcome
from kb_checks.registry import CHECKS, ask
from kb_resources.model import (
    Chunk,
    DocumentKey,
    DocumentState,
    PageSpan,
    Stage,
    StageReport,
    content_hash,
)

KEY = DocumentKey("acme", "leave")
VECTORS = {"missing": 0, "doubled": 0, "models": 1, "worst_norm_error": 1e-5}
INDEX = {
    "passages": 2,
    "lexical": 2,
    "vectors": 2,
    "models": 1,
    "uncleared": 0,
    "current_versions": 1,
    "worst_norm_error": 1e-5,
}


def chunked(parts: list[str], pages: bool = False) -> dict[str, Any]:
    """Facts of a body of these parts, one chunk each; with pages, one page each."""
    body = "\n\n".join(parts)
    chunks, spans = [], []
    for n, part in enumerate(parts):
        char_start = len("\n\n".join(parts[:n])) + (2 if n else 0)
        byte_start = len(body[:char_start].encode())
        byte_end = byte_start + len(part.encode())
        spans.append(PageSpan(n + 1, byte_start, byte_end, char_start, char_start + len(part)))
        start = 0 if pages else char_start
        chunks.append(
            Chunk(
                ordinal=n,
                passage_id=f"leave.{n}",
                text=part,
                context="Leave",
                heading_path=("Leave",),
                page=n + 1 if pages else None,
                locator=None,
                byte_start=byte_start,
                byte_end=byte_end,
                char_start=start,
                char_end=start + len(part),
                content_hash=content_hash(part),
                embed_hash=content_hash(f"Leave {part}"),
                token_count=7,
            )
        )
    return {"body": body, "pages": tuple(spans) if pages else (), "chunks": tuple(chunks)}


def answers(stage: Stage, facts: dict[str, Any], **report: Any) -> dict[str, Outcome]:
    made = StageReport(stage=stage, scope="acme", document_id="leave", version=1, **report)
    base = {"origin": "leave.md", "cleared": True, "current": True, "token_limit": 400}
    case = Case(KEY, made, {**base, **facts})
    return {check.name: outcome for check, _, outcome in ask(stage, [case])}


def failed(stage: Stage, facts: dict[str, Any], **report: Any) -> set[str]:
    return {name for name, got in answers(stage, facts, **report).items() if not got.passed}


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40
).filter(lambda text: text.strip())


@pytest.mark.requirement("O-07")
@given(st.lists(texts, min_size=1, max_size=6), st.booleans())
def test_true_spans_pass_in_any_script(parts: list[str], pages: bool) -> None:
    assert failed(Stage.CHUNK, chunked(parts, pages)) == set()


@pytest.mark.requirement("O-07")
@given(
    st.lists(texts, min_size=2, max_size=6, unique=True),
    st.sampled_from(("byte_start", "byte_end", "char_start", "char_end")),
    st.integers(1, 3),
)
def test_a_span_that_is_off_never_passes(parts: list[str], field: str, by: int) -> None:
    facts = chunked(parts)
    first, *rest = facts["chunks"]
    off = replace(first, **{field: getattr(first, field) + by})
    facts["chunks"] = (off, *rest)
    assert failed(Stage.CHUNK, facts)


def test_chunks_that_overlap_or_stand_out_of_order_fail() -> None:
    facts = chunked(["One day.", "Two days."])
    first, second = facts["chunks"]
    facts["chunks"] = (second, first)
    assert "spans_rebuild_text" in failed(Stage.CHUNK, facts)
    facts["chunks"] = (first, replace(first, ordinal=1, passage_id="other"))
    assert "spans_rebuild_text" in failed(Stage.CHUNK, facts)


def test_a_document_without_chunks_fails() -> None:
    assert failed(Stage.CHUNK, chunked([])) == {"spans_rebuild_text"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"token_count": 401}, {"tokens_within_limit"}),
        ({"token_count": 0}, {"tokens_within_limit", "schema"}),
        ({"embed_hash": "none"}, {"schema"}),
        ({"passage_id": "leave.1"}, {"schema"}),
        ({"content_hash": "0" * 64}, {"spans_rebuild_text"}),
        ({"ordinal": -1}, {"schema"}),
    ],
)
def test_a_chunk_that_does_not_fit_is_named(change: dict[str, Any], expected: set[str]) -> None:
    facts = chunked(["One day.", "Two days."])
    first, second = facts["chunks"]
    facts["chunks"] = (replace(first, **change), second)
    assert failed(Stage.CHUNK, facts) == expected
    problems = [row for got in answers(Stage.CHUNK, facts).values() for row in got.problems]
    assert problems
    assert not any("One day" in row["what"] for row in problems)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, set()),
        ({"missing": 1}, {"embedded_once"}),
        ({"doubled": 1}, {"embedded_once"}),
        ({"worst_norm_error": 0.02}, {"unit_norm"}),
        ({"models": 2}, {"one_model"}),
    ],
)
def test_vectors_are_held_to_their_schema(change: dict[str, Any], expected: set[str]) -> None:
    assert failed(Stage.EMBED, {"vectors": {**VECTORS, **change}}) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"index": INDEX}, set()),
        ({"index": {**INDEX, "uncleared": 1}}, {"only_cleared_and_current"}),
        ({"index": INDEX, "current": False}, {"only_cleared_and_current"}),
        ({"index": {**INDEX, "lexical": 1}}, {"schema"}),
        ({"index": {**INDEX, "vectors": 1}}, {"schema"}),
    ],
)
def test_the_index_is_held_to_its_schema(facts: dict[str, Any], expected: set[str]) -> None:
    assert failed(Stage.INDEX, facts) == expected


@pytest.mark.parametrize("versions", [0, 2])
def test_not_exactly_one_current_version_fails(versions: int) -> None:
    facts = {"index": {**INDEX, "current_versions": versions}}
    assert failed(Stage.SUPERSEDE, facts) == {"one_current_version"}


@pytest.mark.parametrize(
    ("stage", "state", "check"),
    [
        (Stage.ACQUIRE, DocumentState.TOO_LARGE, "accepted"),
        (Stage.ACQUIRE, DocumentState.UNSUPPORTED, "accepted"),
        (Stage.PARSE, DocumentState.NEEDS_OCR, "readable"),
        (Stage.LANGUAGE, DocumentState.LANGUAGE_REFUSED, "language_allowed"),
    ],
)
def test_a_document_turned_away_fails_with_its_reason(
    stage: Stage, state: DocumentState, check: str
) -> None:
    got = answers(stage, {}, state=state, reason="Because of this.")[check]
    assert (got.passed, got.note) == (False, "Because of this.")
    assert got.problems[0]["what"] == state.value


def test_a_duplicate_is_accepted() -> None:
    state = DocumentState.DUPLICATE
    assert failed(Stage.ACQUIRE, {}, state=state, reason="Same bytes as other.") == set()


def test_a_verdict_that_is_not_clean_lists_its_findings_without_their_texts() -> None:
    finding = {
        "rule_id": "override",
        "severity": "high",
        "part": "body",
        "place": "line 3",
        "byte_start": 4,
        "byte_end": 9,
        "excerpt": "secret words",
        "decoded": None,
        "explanation": "It gives orders to a model.",
    }
    details = {"verdict": "block"}
    got = answers(Stage.SCAN, {"findings": [finding]}, details=details)["verdict_clean"]
    assert not got.passed
    assert got.problems == [{"what": "high: override", "where": "line 3, body bytes 4–9"}]
    assert failed(Stage.SCAN, {}, details={"verdict": "clean"}) == set()
    assert failed(Stage.SCAN, {}, details={"verdict": "clean", "truncated": True}) == {
        "covers_all_text"
    }


@pytest.mark.parametrize("stage", [Stage.CHUNK, Stage.EMBED, Stage.INDEX, Stage.SUPERSEDE])
def test_a_refusal_fails_cleared_and_asks_nothing_else(stage: Stage) -> None:
    got = answers(stage, {"verdict": "quarantine"}, refused=True, reason="The gate holds.")
    assert {name: outcome.passed for name, outcome in got.items()} == {"cleared": False}


def test_every_check_tells_what_to_do() -> None:
    for stage, checks in CHECKS.items():
        assert len({check.name for check in checks}) == len(checks)
        for check in checks:
            assert check.stage is stage
            assert check.description.endswith(".")
            assert check.next_step.endswith(".")
