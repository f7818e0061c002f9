"""`kb eval` as its user has it: a set scored, runs kept and compared, refusals, Ctrl-C."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Kb

TEXTS = {
    "leave": "Employees take thirty days of annual leave in each calendar year.",
    "sick": "Whoever falls ill reports it before nine and hands in a note on the third day.",
    "canteen": "The canteen serves dumplings on Thursdays and fish on Fridays.",
}
ASKED = {
    "q1": ("How many days of annual leave are there?", "leave"),
    "q2": ("By when must an ill employee report?", "sick"),
    "q3": ("On which day is there fish?", "canteen"),
    "q4": ("Who composed the opera Rusalka?", ""),
}


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("\n".join(map(json.dumps, rows)))


def make_set(folder: Path, copies: int = 1) -> Path:
    folder.mkdir()
    corpus = [
        {"_id": name if not n else f"{name}-{n}", "text": f"{text} No. {n}." if n else text}
        for n in range(copies)
        for name, text in TEXTS.items()
    ]
    write(folder / "corpus.jsonl", corpus)
    write(folder / "queries.jsonl", [{"_id": q, "text": text} for q, (text, _) in ASKED.items()])
    labels = [f"{q}\t{found}\t1" for q, (_, found) in ASKED.items() if found]
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *labels]))
    return folder


@pytest.mark.requirement("P-38", "P-39")
def test_a_set_is_scored_kept_compared_and_leaves_no_scope(kb: Kb, tmp_path: Path) -> None:
    folder = make_set(tmp_path / "small")
    first = kb("eval", "run", "--beir", str(folder), "--json").json
    assert first["loaded"] == {"documents": 3, "indexed": 3, "held": []}
    assert first["figures"]["all"]["means"]["r_1"] == 1.0
    assert [one["nothing"] for one in first["questions"]] == [False, False, False, True]
    assert (first["cut"], first["pool"], first["gain"]) == (10, 100, "binary")
    by_words = kb("eval", "run", "--beir", str(folder), "--mode", "text", "--json").json
    listed = kb("eval", "list", "--json").json
    assert [one["run_id"] for one in listed[:2]] == [by_words["run_id"], first["run_id"]]
    compared = kb("eval", "compare", first["run_id"][:8], first["run_id"], "--json")
    assert (compared.code, compared.json["passed"]) == (0, True)
    assert compared.json["differences"]["ndcg_10"]["mean"] == 0
    assert kb("eval", "accept", first["run_id"], "--json").json["accepted_by"]
    assert "eval-" not in kb("scopes", "list").out
    shown = kb("eval", "run", "--beir", str(folder), COLUMNS="160")  # a narrow terminal folds
    assert "nDCG@10" in shown.out
    assert "1, 100% with nothing" in shown.out


def test_wrong_files_and_options_are_refused_with_line_and_fix(kb: Kb, tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"id": "a", "text": "?", "relevant": []}\n{"id": "a", "text": "?"}\n')
    wrong = kb("eval", "run", "--scope", "acme", "--questions", str(asked), "--json")
    assert wrong.code == 2
    said = json.loads(wrong.err)["error"]
    assert said["code"] == "bad_questions"
    assert "asked.jsonl, line 2: " in said["message"]
    assert said["next_step"]
    for options in ((), ("--beir", "x", "--questions", "y"), ("--beir", "x", "--scope", "acme")):
        assert kb("eval", "run", *options).code == 2
    assert kb("eval", "run", "--beir", str(tmp_path / "nowhere")).code == 2
    assert kb("eval", "compare", "ffff", "ffff").code == 3
    assert kb("eval", "accept", "ffff").code == 3
    assert kb("eval", "list", "--scope", "No Scope").code == 2


def test_broken_off_by_hand_the_scope_is_gone(kb: Kb, tmp_path: Path) -> None:
    folder = make_set(tmp_path / "long", copies=1500)
    running = kb.start("eval", "run", "--beir", str(folder), "--json")
    deadline = time.monotonic() + 240
    while "eval-" not in kb("scopes", "list").out:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=240)
    assert running.returncode == 130, said
    assert "eval-" not in kb("scopes", "list").out


def test_search_takes_filters_joins_sections_and_says_when_nothing_answers(
    kb: Kb, tmp_path: Path
) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n")
    done = kb("ingest", str(tmp_path), "--scope", "acme")
    assert done.code == 0, done.err

    def found(*options: str) -> list[str]:
        hits = kb("search", ASKED["q1"][0], "--scope", "acme", "--json", *options).json["hits"]
        return [hit["title"] for hit in hits]

    assert found()[0] == "Leave"
    assert found("--heading", "Sick") == ["Sick"]
    assert found("--language", "de") == []
    assert sorted(found("--media-type", "text/markdown")) == ["Canteen", "Leave", "Sick"]
    assert found("--metadata", '{"author": "nobody"}') == []
    assert kb("search", "x", "--scope", "acme", "--metadata", "[1]").code == 2
    assert found("--known-at", "2020-01-01") == []
    right = kb("search", ASKED["q1"][0], "--scope", "acme", "--json").json
    wrong = kb("search", ASKED["q4"][0], "--scope", "acme", "--json").json
    assert (right["nothing_relevant"], wrong["nothing_relevant"]) == (False, True)
    assert right["hits"][0]["relevance"] > wrong["hits"][0]["relevance"]
    assert "Nothing relevant was found" in kb("search", ASKED["q4"][0], "--scope", "acme").out
    answered = [kb("ask", ASKED[q][0], "--scope", "acme", "--json").json for q in ("q1", "q4")]
    assert [one["nothing_relevant"] for one in answered] == [False, True]
    sections = kb("search", "leave", "--scope", "acme", "--join", "--json").json["sections"]
    assert ["Leave"] in [one["ancestors"] for one in sections]
