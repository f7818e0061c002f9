"""A document as JSON and back; what is wrong is named with its place."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.errors import InputError
from kb_resources.model import BBox, Block, Coverage, PageSpan, ParsedDocument, RemovedLine
from kb_resources.store.document_json import document_from_json, document_to_json


def made() -> ParsedDocument:
    body = "# Žalba\n\nRok je 15 dana.\n\nStrana dva."
    first = body.index("\n\nStrana")
    cut = len(body[:first].encode())
    return ParsedDocument(
        title="Žalba",
        media_type="application/pdf",
        body=body,
        blocks=(
            Block("heading", "# Žalba", 0, 8, 0, 7, 1, BBox(1, 2, 3, 4), ("Žalba",), None, 1),
            Block("paragraph", "Rok je 15 dana.", 10, cut, 9, first, 1, None, ("Žalba",), "§ 2"),
            Block(
                "paragraph", "Strana dva.", cut + 2, cut + 13, 0, 11, 2, None, ("Žalba",),
                continues=True, confidence=0.5,
            ),
        ),
        pages=(
            PageSpan(1, 0, cut, 0, first),
            PageSpan(2, cut + 2, cut + 13, first + 2, first + 13),
        ),
        raw_text=body,
        coverage=Coverage(2, 2, 0, (), 0, 0.0, (RemovedLine(1, "1", "page_number"),), ("Hm.",)),
        parser="pdf/1",
        metadata={"author": "N. N."},
    )  # fmt: skip


@pytest.mark.requirement("W-38")
def test_a_document_comes_back_as_it_was() -> None:
    """[65] Its id is not inside."""
    document = made()
    text = json.dumps(document_to_json(document))
    assert document_from_json(text) == document
    assert document_from_json(text.encode()) == document
    assert "id" not in json.loads(text)


@pytest.mark.requirement("W-38")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda _: [], "The root is not an object"),
        (lambda d: {**d, "format": "kb.document/9"}, "/format is not"),
        (lambda d: {**d, "title": " "}, "/title is not"),
        (lambda d: {**d, "body": None}, "/body is not a string"),
        (lambda d: {**d, "body": "nul \0"}, "/body is not a string without U\\+0000"),
        (lambda d: {**d, "metadata": {"a": 1}}, "/metadata is not"),
        (lambda d: {**d, "metadata": []}, "/metadata is not"),
        (lambda d: {**d, "blocks": {}}, "/blocks is not a list"),
        (lambda d: {**d, "blocks": [7]}, "/blocks/0 is not an object"),
        (lambda d: spoilt(d, 1, kind="essay"), "/blocks/1/kind is not one of"),
        (lambda d: spoilt(d, 1, bytes=[1]), "/blocks/1/bytes is not two whole numbers"),
        (lambda d: spoilt(d, 1, chars=[-1, 2]), "/blocks/1/chars is not two whole numbers"),
        (lambda d: spoilt(d, 1, bytes=[0, 8]), "/blocks/1/bytes is not a span inside"),
        (lambda d: spoilt(d, 1, chars=[8, 23]), "/blocks/1/chars is not the characters"),
        (lambda d: spoilt(d, 0, level=9), "/blocks/0/level is not"),
        (lambda d: spoilt(d, 0, bbox=[1, 2]), "/blocks/0/bbox is not"),
        (lambda d: spoilt(d, 2, page=9), "/blocks/2/page is not a page"),
        (lambda d: {**d, "pages": [[1, 2]]}, "/pages/0 is not \\[page"),
        (lambda d: {**d, "pages": [[1, 0, 9, 0, 9]]}, "/pages/0 is not byte and character"),
        (lambda d: {**d, "coverage": 5}, "/coverage is not"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(spoil: Any, message: str) -> None:
    """[65]"""
    with pytest.raises(InputError, match=message) as caught:
        document_from_json(spoil(document_to_json(made())))
    assert caught.value.code == "document_invalid"


def spoilt(document: dict[str, Any], block: int, **values: Any) -> dict[str, Any]:
    blocks = [dict(row) for row in document["blocks"]]
    blocks[block] |= values
    return {**document, "blocks": blocks}


@pytest.mark.requirement("W-38")
@pytest.mark.parametrize(
    ("text", "message"),
    [("{", "line 1 column 2"), ("", "line 1 column 1"), (b"\xff\xfe{", "not JSON")],
)
def test_what_is_no_json_is_told_with_line_and_column(text: Any, message: str) -> None:
    """[65]"""
    with pytest.raises(InputError, match=message):
        document_from_json(text)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["kind", "bytes", "page", "a"]), inner, max_size=3),
        ),
        max_leaves=8,
    ),
    st.sampled_from(["blocks", "pages", "coverage", "metadata", "title", "body"]),
)
def test_any_value_in_any_place_is_taken_or_refused_by_type(value: Any, name: str) -> None:
    data = {**document_to_json(made()), name: value}
    refused = ""
    try:
        document_from_json(data)
    except InputError as error:
        refused = error.code
    assert refused in ("", "document_invalid")


def test_the_scans_input_stays_behind() -> None:
    document = replace(made(), raw_text="raw \u200b", hidden=())
    assert document_from_json(document_to_json(document)).raw_text == document.body
