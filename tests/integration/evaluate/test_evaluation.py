"""Evaluations over a real line: scratch scopes, kept runs, stale labels, who sees what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kb_resources import evaluate
from kb_resources.errors import InputError, NotFound, PolicyError
from kb_resources.evaluate import keeping, parse_questions
from kb_resources.stages import evaluation, scratch
from kb_resources.stages.evaluation import Wanted
from kb_resources.store import evaluations
from kb_resources.store.pool import Database
from tests.integration.line.conftest import Bench

WANTED = Wanted("small.jsonl", "test")


def ask(database: Database, query: str) -> Any:
    with database.transaction("owner") as conn:
        return conn.execute(query).fetchall()


def left_behind(database: Database) -> dict[str, int]:
    """Rows by table that name a scope which is not there, and scratch scopes themselves."""
    tables = [
        row[0]
        for row in ask(
            database,
            "select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid"
            " where c.relnamespace = 'kb'::regnamespace and c.relkind = 'r'"
            " and a.attname = 'scope_id' and not a.attisdropped",
        )
    ]
    gone = "scope_id is not null and scope_id not in (select scope_id from kb.scope)"
    counts = {
        name: ask(database, f"select count(*) from kb.{name} where {gone}")[0][0] for name in tables
    }
    counts["scratch"] = ask(database, "select count(*) from kb.scratch_scope")[0][0]
    return {name: count for name, count in counts.items() if count}


@pytest.mark.requirement("P-38", "P-39")
def test_a_labelled_set_is_loaded_asked_kept_and_gone(bench: Bench, labelled: Path) -> None:
    database = bench.line.capabilities.database
    scopes = ask(database, "select name from kb.scope order by 1")
    ran = evaluation.run_set(bench.line, labelled, Wanted("small-en", "test"))
    assert ran.loaded is not None
    assert (ran.loaded.documents, ran.loaded.indexed) == (5, 4)
    assert [name for name, _ in ran.loaded.held] == ["held"]  # the scan holds it here too
    assert ran.made.overall.means["r_1"] == 1.0
    assert (ran.made.overall.questions, ran.made.overall.unanswerable) == (3, 1)
    assert ask(database, "select name from kb.scope order by 1") == scopes
    assert left_behind(database) == {}
    with database.transaction("pipeline") as conn:
        kept = keeping.kept(evaluations.get(conn, ran.kept.run_id[:8]))
        assert keeping.judged(conn, kept.run_id) == ran.made.judged
    assert (kept.scope, kept.name, kept.config["mode"]) == (None, "small-en", "hybrid")
    assert json.dumps(evaluation.to_json(ran))


def test_a_run_that_is_broken_off_leaves_nothing(
    bench: Bench, labelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = bench.line.capabilities.database

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluation.run_set(bench.line, labelled, WANTED)
    assert left_behind(database) == {}


def test_scopes_of_killed_runs_are_swept_and_others_never(bench: Bench) -> None:
    database = bench.line.capabilities.database
    with database.transaction("pipeline") as conn:
        evaluations.make_scratch(conn, "eval-killed", "test")
        ordinary = conn.execute(
            "insert into kb.scope (name) values ('ordinary') returning scope_id"
        ).fetchone()
    with scratch.scratch_scope(database, actor="test") as name:
        left = ask(database, "select name from kb.scope where name like 'eval-%'")
        assert left == [(name,)]
        assert scratch.sweep(database) == 0  # somebody holds it
    assert ordinary is not None
    with pytest.raises(PolicyError), database.transaction("pipeline") as conn:
        evaluations.drop_scratch(conn, ordinary[0])


def questions(document: str) -> list[dict[str, Any]]:
    return [
        {
            "id": "leave",
            "text": "How many days of leave?",
            "relevant": [{"document": document, "section": ["Leave"]}],
        },
        {
            "id": "ill",
            "text": "When must somebody who is ill report?",
            "relevant": [{"document": document, "section": ["Illness"]}],
        },
        {"id": "mars", "text": "What is the capital of Mars?", "relevant": []},
    ]


BODY = (
    "# Leave\n\nEmployees take thirty days of annual leave.\n\n"
    "# Illness\n\nWhoever is ill reports before nine.\n"
)


@pytest.mark.requirement("P-38")
def test_labels_hold_whatever_the_chunker_does(bench: Bench) -> None:
    key = bench.ingest("rules.md", BODY)
    asked = parse_questions("\n".join(map(json.dumps, questions("rules.md"))))
    caps = bench.line.capabilities
    whole = evaluation.run_scope(caps, "acme", asked, WANTED)
    assert whole.made.overall.means["r_1"] == 1.0
    with caps.database.transaction("pipeline") as conn:
        conn.execute(
            'update kb.scope set settings = settings || \'{"chunk_preset": "sentence",'
            " \"chunk_tokens\": 24}' where name = 'acme'"
        )
    before = len(bench.search("ill", k=100).hits)
    bench.line.run_all([key])
    assert len(bench.search("ill", k=100).hits) >= before
    again = evaluation.run_scope(caps, "acme", asked, WANTED)
    assert again.made.overall.means["r_1"] == 1.0
    assert again.kept.questions_digest == whole.kept.questions_digest
    verdict = evaluate.not_worse(whole.made.judged, again.made.judged)
    assert verdict.passed, verdict.reason


def test_labels_that_name_nothing_are_refused_by_line(bench: Bench) -> None:
    key = bench.ingest("rules.md", BODY)
    caps = bench.line.capabilities
    wrong = [
        {"document": "nowhere.md"},
        {"document": "rules.md", "section": ["Bonus"]},
        {"document": key.document_id, "bytes": [0, 9999]},
        {"document": key.document_id, "bytes": [0, 5], "version": 2},
        {"document": key.document_id, "node": "00000000"},
    ]
    rows = [{"id": f"q{n}", "text": "?", "relevant": [one]} for n, one in enumerate(wrong, 1)]
    asked = parse_questions("\n".join(map(json.dumps, rows)))
    for question in asked:
        with pytest.raises(InputError, match=f"Line {question.line}, ") as raised:
            evaluation.run_scope(caps, "acme", [question], WANTED)
        assert raised.value.code == "stale_labels"
    ran = evaluation.run_scope(caps, "acme", asked, WANTED, allow_stale=True)
    assert ran.made.overall.means["r_5"] == 0.2  # bytes past the end begin inside it
    with pytest.raises(NotFound):
        evaluation.run_scope(caps, "nowhere", asked, WANTED)


def test_who_sees_a_kept_run(bench: Bench, database: Database) -> None:
    bench.ingest("rules.md", BODY)
    bench.ingest("other.md", BODY, scope="other")
    asked = parse_questions("\n".join(map(json.dumps, questions("rules.md"))))
    caps = bench.line.capabilities
    ran = evaluation.run_scope(caps, "acme", asked, WANTED)
    with caps.database.transaction("pipeline") as conn:
        assert keeping.accepted(conn, "acme", "small.jsonl") is None
        evaluations.accept(conn, ran.kept.run_id, "somebody")
        found = keeping.accepted(conn, "acme", "small.jsonl")
    assert found is not None
    assert (found.run_id, found.accepted_by) == (ran.kept.run_id, "somebody")
    with database.transaction("app", "acme") as conn:
        assert [row["run_id"] for row in evaluations.recent(conn, "acme")] == [ran.kept.run_id]
        assert len(evaluations.questions(conn, ran.kept.run_id)) == 3
    with database.transaction("app", "other") as conn:
        assert evaluations.recent(conn, "acme") == []
        assert evaluations.questions(conn, ran.kept.run_id) == []
        with pytest.raises(NotFound):
            evaluations.get(conn, ran.kept.run_id)
    with pytest.raises(PolicyError), database.transaction("app", "acme") as conn:
        evaluations.accept(conn, ran.kept.run_id, "a reader")


def test_a_reader_is_measured_by_what_that_reader_finds(bench: Bench) -> None:
    bench.ingest("rules.md", BODY, audiences=("staff",))
    asked = parse_questions("\n".join(map(json.dumps, questions("rules.md"))))
    caps = bench.line.capabilities
    held = evaluation.run_scope(caps, "acme", asked, Wanted("q", "t", audiences=("staff",)))
    lacking = evaluation.run_scope(caps, "acme", asked, Wanted("q", "t", audiences=("guests",)))
    assert (held.made.overall.means["r_1"], lacking.made.overall.means["r_100"]) == (1.0, 0.0)
    assert lacking.kept.config["audiences"] == ["guests"]
