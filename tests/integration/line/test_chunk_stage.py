"""The chunk stage: limits that refuse with the reason, a scope's own way to cut, odd texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kb_resources.chunk.counting import ESTIMATE_WARNING
from kb_resources.model import Stage
from kb_resources.stages import scopes as stage
from kb_resources.stages.line import Line
from kb_resources.store import staging

SENTENCE = "The committee meets in the large hall on the first Monday of every month at nine. "
LONG = "# Rules\n\n" + "\n\n".join(f"## Part {n}\n\n{SENTENCE * 3}" for n in range(6))


def with_caps(bench: Any, **values: Any) -> Line:
    return Line(replace(bench.line.capabilities, **values), bench.line.languages)


def result(bench: Any, key: Any) -> staging.StageResult:
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        [row] = bench.line.rows([key])
        return staging.results(conn, [row.version_key], Stage.CHUNK)[row.version_key, Stage.CHUNK]


@pytest.mark.requirement("B-29")
def test_too_many_chunks_are_refused_with_the_reason_until_the_limit_allows(bench: Any) -> None:
    assert bench.line.capabilities.max_chunks == 10_000
    key = bench.line.register(bench.request(bench.write("rules.md", LONG).name))
    versions = bench.line.capabilities.versions
    narrow = with_caps(bench, max_chunks=3, versions=replace(versions, chunker="three"))
    narrow.run_all([key])
    state, reason = bench.state(key)
    assert state == "too_large"
    assert "6 chunks; 3 are allowed" in reason
    assert "KB_MAX_CHUNKS" in reason
    assert bench.texts("committee hall") == []
    narrow.run_all([key])
    assert bench.state(key) == (state, reason)
    bench.line.run_all([key])
    assert bench.state(key)[0] == "indexed"
    assert bench.texts("committee hall") != []


@pytest.mark.requirement("W-12", "O-02")
def test_an_estimated_count_is_on_record_and_an_exact_one_is_not(bench: Any) -> None:
    key = bench.ingest("rules.md", LONG)
    assert "counting_warning" not in result(bench, key).details
    versions = replace(bench.line.capabilities.versions, chunker="estimate")
    line = with_caps(bench, counting_warning=lambda: ESTIMATE_WARNING, versions=versions)
    line.run_all([key])
    assert result(bench, key).details["counting_warning"] == ESTIMATE_WARNING


@pytest.mark.requirement("W-41", "W-12", "B-10")
def test_a_scopes_settings_changed_and_changed_back_give_the_first_passages_again(
    bench: Any,
) -> None:
    database = bench.line.capabilities.database
    key = bench.ingest("rules.md", LONG)

    def passages(**changes: Any) -> list[tuple[str, str]]:
        stage.configure(database, "acme", changes, actor="test")
        bench.line.run_all([key])
        with database.transaction("pipeline") as conn:
            return conn.execute(
                "select passage_id, text from kb.passage order by ordinal"
            ).fetchall()

    first = passages(chunk_tokens=0)
    embedded = bench.counters["embedded"]
    other = passages(chunk_preset="flat", chunk_tokens=120)
    assert other != first
    assert passages(chunk_preset="", chunk_tokens=0) == first
    assert passages(retention_days=5) == first
    assert embedded > 0


def test_a_scope_set_to_another_model_is_not_worked_with_this_one(bench: Any) -> None:
    database = bench.line.capabilities.database
    stage.create(database, "acme", languages=bench.line.languages, actor="test")
    stage.configure(database, "acme", {"model": "bge-m3"}, actor="test")
    key = bench.ingest("rules.md", LONG)
    assert bench.state(key)[0] == "pending"
    assert bench.counters.get("embedded", 0) == 0
    stage.configure(database, "acme", {"model": "multilingual-e5-small"}, actor="test")
    bench.line.run_all([key])
    assert bench.state(key)[0] == "indexed"


def test_a_scopes_audiences_hold_where_the_source_says_nothing(bench: Any) -> None:
    database = bench.line.capabilities.database
    stage.create(database, "acme", languages=bench.line.languages, actor="test")
    stage.configure(database, "acme", {"audiences": ("board",)}, actor="test")
    bench.ingest("a.md", "# Alpha\n\nThe alpha rule about the large hall and its keys.")
    bench.ingest("b.md", "# Beta\n\nThe beta rule about the large hall.", audiences=("staff",))
    assert bench.texts("hall") == []
    shown = bench.line.rows(bench.line.select("acme", [*_states()]))
    assert {row.origin: row.audiences for row in shown} == {"a.md": ["board"], "b.md": ["staff"]}


def _states() -> list[Any]:
    from kb_resources.model import DocumentState

    return list(DocumentState)


@pytest.mark.requirement("P-13")
def test_case_b20_a_nul_in_one_document_of_three_costs_none_of_them(bench: Any) -> None:
    texts = {
        "one.txt": "The first note is about the large hall and its two keys.",
        "two.txt": "The second note\0 is about the small hall and its\0 only key.",
        "three.txt": "The third note is about the garden and its iron gate.",
    }
    keys = [bench.line.register(bench.request(bench.write(n, t).name)) for n, t in texts.items()]
    bench.line.run_all(keys)
    assert [bench.state(key)[0] for key in keys] == ["indexed"] * 3
    [second, *_] = bench.texts("second note small")
    assert "\0" not in second
    assert "small hall" in second
