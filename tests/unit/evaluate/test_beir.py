"""Labelled sets in BEIR's layout: read as distributed, refused by file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kb_resources.errors import InputError
from kb_resources.evaluate.beir import read_set

CORPUS = [
    {"_id": "d 1", "title": "Leave", "text": "Thirty days."},
    {"_id": 2, "title": "Only a title", "text": ""},
    {"_id": "empty", "title": "", "text": " "},
]
QUERIES = [{"_id": "q1", "text": "How long?", "lang": "en"}, {"_id": "q2", "text": "Why?"}]


def make(
    folder: Path, qrels: str = "query-id\tcorpus-id\tscore\nq1\td 1\t2\n", **files: Any
) -> Path:
    given = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES} | {
        f"{name}.jsonl": rows for name, rows in files.items()
    }
    folder.mkdir(exist_ok=True)
    for name, rows in given.items():
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / name).write_text("\n".join(lines))
    (folder / "qrels.tsv").write_text(qrels)
    return folder


def test_a_set_as_it_is_distributed(tmp_path: Path) -> None:
    one = read_set(make(tmp_path / "leave-en", "q1\td 1\t2\nq1\tx\t0\nlost\td 1\t1\r\n"))
    assert one.name == "leave-en"
    assert [(row.id, row.text) for row in one.corpus()] == [
        ("d 1", "Thirty days."),
        ("2", "Only a title"),
    ]
    assert [(q.id, q.slice, [label.document for label in q.labels]) for q in one.questions] == [
        ("q1", "other", ["d 1"]),
        ("q2", "unanswerable", []),
    ]
    assert (one.questions[0].language, one.unknown) == ("en", 1)
    split = make(tmp_path / "split")
    (split / "qrels.tsv").unlink()
    (split / "qrels").mkdir()
    (split / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td 1\t1\n")
    assert [q.id for q in read_set(split).questions] == ["q1"]
    assert not read_set(make(tmp_path / "low"), min_grade=3).questions[0].labels


@pytest.mark.parametrize(
    ("files", "qrels", "what"),
    [
        ({"queries": ["{"]}, "q1\td 1\t1", "queries.jsonl, line 1: is not JSON"),
        ({"queries": [QUERIES[0], QUERIES[0]]}, "q1\td 1\t1", "line 2: has the id 'q1'"),
        ({"queries": [{"_id": "q1"}]}, "q1\td 1\t1", "line 1: has no 'text'"),
        ({"queries": ["[]"]}, "q1\td 1\t1", "line 1: is no JSON object"),
        ({}, "q1\td 1\t1\nq1 d 1 1\n", "qrels.tsv, line 2: is not query id"),
        ({}, "q1\td 1\tone\nq1\td 1\tmany\n", "qrels.tsv, line 2: is not query id"),
    ],
)
def test_a_complaint_names_file_and_line(
    tmp_path: Path, files: dict[str, Any], qrels: str, what: str
) -> None:
    with pytest.raises(InputError) as raised:
        read_set(make(tmp_path / "set", qrels, **files))
    assert what in raised.value.message
    assert raised.value.next_step
    assert raised.value.code == "bad_set"


def test_a_corpus_with_an_id_twice_or_a_missing_file(tmp_path: Path) -> None:
    folder = make(tmp_path / "twice", corpus=[CORPUS[0], CORPUS[0]])
    with pytest.raises(InputError, match=r"corpus.jsonl, line 2: has the id 'd 1'"):
        list(read_set(folder).corpus())
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match=r"has no corpus.jsonl"):
        read_set(folder)
    with pytest.raises(InputError, match=r"has no corpus.jsonl"):
        read_set(tmp_path / "nowhere")
