"""Plain text, JSON and delimited text."""

from __future__ import annotations

import json
import time

import pytest

from kb_resources.model import Refusal
from kb_resources.parse import Reading
from kb_resources.parse.csvdoc import delimiter_of, read_csv
from kb_resources.parse.jsondoc import read_json
from kb_resources.parse.text import read_text


def texts(reading: Reading | Refusal) -> list[str]:
    assert isinstance(reading, Reading)
    return [" ".join(draft.text.split()) for draft in reading.drafts]


@pytest.mark.requirement("W-04")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_part_paragraphs(end: str) -> None:
    data = end.join(["one", "still one", "", "  ", "two"]).encode()
    assert texts(read_text(data, "a.txt")) == ["one still one", "two"]


@pytest.mark.requirement("W-04")
def test_a_paragraph_separator_parts_paragraphs() -> None:
    assert texts(read_text("one\u2029two".encode(), "a.txt")) == ["one", "two"]


def test_a_line_is_a_paragraph_where_lines_were_never_wrapped() -> None:
    long = "word " * 60
    data = f"Article 1\n{long}\nArticle 2\n{long}".encode()
    assert len(texts(read_text(data, "a.txt"))) == 4


def test_wrapped_lines_are_one_paragraph() -> None:
    data = b"\n".join([b"x" * 70] * 5)
    assert len(texts(read_text(data, "a.txt"))) == 1


def test_items_are_list_items() -> None:
    got = read_text(b"Buy:\n\n- milk\n- two\n  eggs\n\n1. first\n2. second\n", "a.txt")
    assert isinstance(got, Reading)
    assert [(d.kind, d.marker) for d in got.drafts] == [
        ("paragraph", None),
        ("list_item", "-"),
        ("list_item", "-"),
        ("list_item", "1."),
        ("list_item", "2."),
    ]


def test_text_without_an_encoding_is_unsupported() -> None:
    got = read_text(bytes((i * 7 + 128) % 128 + 128 for i in range(400)), "odd.txt")
    assert isinstance(got, Refusal)
    assert "UTF-8" in got.reason


@pytest.mark.requirement("P-04")
def test_json_keys_become_headings_and_records_stay_apart() -> None:
    value = {
        "title": "Rates",
        "terms": {"payment": "in 30 days", "note": "x" * 100},
        "rows": [{"sku": "A-1", "price": 3.5}, {"sku": "B-2", "price": None}],
        "tags": ["new", "sale"],
    }
    got = read_json(json.dumps(value).encode(), "rates.json")
    assert isinstance(got, Reading)
    assert got.title == "Rates"
    assert [(d.kind, d.text, d.locator) for d in got.drafts] == [
        ("paragraph", "title: Rates", None),
        ("heading", "terms", None),
        ("paragraph", "payment: in 30 days", None),
        ("heading", "note", None),
        ("paragraph", "x" * 100, None),
        ("heading", "rows", None),
        ("paragraph", "sku: A-1", "Item 1"),
        ("paragraph", "price: 3.5", "Item 1"),
        ("paragraph", "sku: B-2", "Item 2"),
        ("paragraph", "price: null", "Item 2"),
        ("heading", "tags", None),
        ("list_item", "new", "Item 1"),
        ("list_item", "sale", "Item 2"),
    ]


@pytest.mark.requirement("P-04")
@pytest.mark.parametrize("text", ["[" * 1000 + "]" * 1000, '{"a":' * 1000 + "1" + "}" * 1000])
def test_deep_json_is_refused_at_once(text: str) -> None:
    got = read_json(text.encode(), "deep.json")
    assert isinstance(got, Refusal)
    assert got.state.value == "corrupt"
    assert "200" in got.reason


def test_brackets_in_strings_are_no_depth() -> None:
    assert isinstance(read_json(json.dumps(["[" * 1000]).encode(), "a.json"), Reading)


def test_an_unclosed_string_takes_linear_time() -> None:
    started = time.process_time()
    read_json(b'["' + b"\\" * 500_000, "a.json")
    assert time.process_time() - started < 2


def test_malformed_json_says_where() -> None:
    got = read_json(b'{"a": 1,}', "a.json")
    assert isinstance(got, Refusal)
    assert "line 1" in got.reason


def test_json_lines_are_records() -> None:
    got = read_json(b'{"a": 1}\n{"a": 2}\n', "a.jsonl")
    assert isinstance(got, Reading)
    assert [d.locator for d in got.drafts] == ["Record 1", "Record 2"]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a;b;c\n1,5;2;3\n", ";"),
        ("a,b\n1,2\n", ","),
        ("a\tb\n1\t2\n", "\t"),
        ('name|text\nx|"a|b"\n', "|"),
        ("one column\nonly\n", ","),
    ],
)
def test_the_delimiter_is_found(text: str, delimiter: str) -> None:
    assert delimiter_of(text) == delimiter


def test_csv_is_a_table_with_its_header_in_each_part() -> None:
    rows = "\n".join(f"{n};name {n}" for n in range(1200))
    got = read_csv(f"id;name\n{rows}\n".encode("utf-16"), "a.csv")
    assert isinstance(got, Reading)
    assert [len(draft.rows) for draft in got.drafts] == [501, 501, 201]
    assert all(draft.rows[0] == ("id", "name") for draft in got.drafts)
    assert [d.locator for d in got.drafts] == [
        "Rows 1 to 501",
        "Rows 502 to 1001",
        "Rows 1002 to 1201",
    ]


def test_csv_of_numbers_has_no_header() -> None:
    got = read_csv(b"1,2\n3,4\n", "a.csv")
    assert isinstance(got, Reading)
    assert got.drafts[0].header_rows == 0
