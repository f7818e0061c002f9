"""Question files: what is read, and that every complaint names its line and what to do."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.errors import InputError
from kb_resources.evaluate import Label, half_of, parse_questions, read_questions

GOOD: dict[str, Any] = {
    "id": "q",
    "text": "How long is leave?",
    "relevant": [{"document": "leave"}],
}


def lines(*values: Any) -> str:
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in values)


@pytest.mark.requirement("P-38")
def test_labels_name_documents_sections_and_bytes_but_no_passage() -> None:
    labels = [
        {"document": "a", "section": ["Leave", "Sick"], "grade": 3},
        {"document": "b", "bytes": [10, 40], "version": 2},
        {"document": "c", "node": "0123abcd"},
    ]
    found = parse_questions(
        lines(
            GOOD | {"relevant": labels, "language": "sr-Latn", "slice": "exact", "group": "g"},
            "",
            {"id": "none", "text": "What is the capital of Mars?", "relevant": []},
        )
    )
    assert found[0].labels == (
        Label("a", section=("Leave", "Sick"), grade=3),
        Label("b", span=(10, 40), version=2),
        Label("c", node="0123abcd"),
    )
    assert (found[0].language, found[0].slice, found[0].line) == ("sr-Latn", "exact", 1)
    assert (found[1].slice, found[1].line) == ("unanswerable", 3)
    with pytest.raises(InputError, match="'passage', which is no field of a label"):
        parse_questions(lines(GOOD | {"relevant": [{"document": "a", "passage": "p"}]}))


@pytest.mark.parametrize(
    ("wrong", "what", "fix"),
    [
        ("{", "is not JSON", "one object a line"),
        ("[1]", "is no JSON object", "Write it as"),
        ({"text": "x", "relevant": []}, "no text as 'id'", '"id"'),
        (GOOD | {"id": ""}, "empty or too long", "200"),
        (GOOD | {"id": 7}, "no text as 'id'", '"id"'),
        (GOOD | {"text": "  "}, "blank text", '"text"'),
        (GOOD | {"text": "a\0"}, "NUL", "Take it out"),
        ('{"id": "q", "text": "\\ud800", "relevant": []}', "surrogate", "Take it out"),
        ({"id": "q", "text": "x"}, "says nothing of what answers", '"relevant": []'),
        (GOOD | {"relevent": []}, "'relevent', which is no field", "relevant"),
        (GOOD | {"relevant": {}}, "no list", '"relevant": ['),
        (GOOD | {"relevant": ["a"]}, "label that is no object", '"document"'),
        (GOOD | {"relevant": [{}]}, "no text as 'document'", '"document"'),
        (GOOD | {"relevant": [{"document": "a", "section": "x"}]}, "list of headings", "section"),
        (GOOD | {"relevant": [{"document": "a", "bytes": [4, 4]}]}, "bytes", "end after start"),
        (GOOD | {"relevant": [{"document": "a", "grade": 0}]}, "grade 0", "whole number"),
        (GOOD | {"relevant": [{"document": "a", "grade": True}]}, "grade True", "whole number"),
        (GOOD | {"relevant": [{"document": "a", "node": "abc-2"}]}, "node", "8 hex"),
        (GOOD | {"slice": "hard"}, "slice 'hard'", "paraphrase"),
        (GOOD | {"slice": "unanswerable"}, "and labels", "empty list"),
        (GOOD | {"slice": "exact", "relevant": []}, "and no label", "empty list"),
        (GOOD | {"language": "German"}, "language 'German'", "ISO 639-1"),
        (GOOD | {"id": "first"}, "of line 1", "id of its own"),
    ],
)
def test_a_complaint_names_the_line_and_what_to_do(wrong: Any, what: str, fix: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_questions(lines(GOOD | {"id": "first"}, wrong), "asked.jsonl")
    assert "asked.jsonl, line 2: " in raised.value.message
    assert what in raised.value.message
    assert fix in raised.value.next_step
    assert raised.value.code == "bad_questions"


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    with pytest.raises(InputError, match="cannot be read"):
        read_questions(file)
    file.write_bytes(lines(GOOD).encode() + b"\n\xff")
    with pytest.raises(InputError, match="line 2: is not UTF-8"):
        read_questions(file)
    file.write_text(" \n\n")
    with pytest.raises(InputError, match="holds no question"):
        read_questions(file)
    file.write_bytes(b"\xef\xbb\xbf" + lines(GOOD).encode())
    assert read_questions(file)[0].id == "q"


@given(st.text())
def test_any_text_is_read_or_refused_by_type(text: str) -> None:
    with contextlib.suppress(InputError):
        assert parse_questions(text)


@pytest.mark.requirement("P-40")
def test_halves_never_move_and_hold_about_half() -> None:
    assert [half_of(name) for name in ("q1", "q2", "leave-1", "a")] == [
        "dev",
        "test",
        "dev",
        "test",
    ]
    share = sum(half_of(f"question {n}") == "dev" for n in range(4000)) / 4000
    assert 0.46 < share < 0.54
    twins = parse_questions(
        lines(*(GOOD | {"id": f"q-{code}", "group": "q"} for code in ("en", "de", "hr", "ru")))
    )
    assert len({question.half for question in twins}) == 1
