"""Replies of models: exactly the object that was asked for, or an error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.answer.replies import MalformedReply, read_reply


def statement(**changes: Any) -> dict[str, Any]:
    return {"text": "Leave is 25 days.", "quotes": [{"passage": 1, "quote": "x"}], **changes}


def test_a_reply_is_read_as_claims() -> None:
    claims = read_reply(json.dumps({"statements": [statement(), statement(quotes=[])]}))
    assert [claim.text for claim in claims] == ["Leave is 25 days."] * 2
    assert claims[0].quotes[0].passage == 1
    assert claims[1].quotes == ()
    assert read_reply('{"statements": []}') == ()


@pytest.mark.requirement("O-46")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "I don't know.",
        '```json\n{"statements": []}\n```',
        '{"statements": []} Hope that helps!',
        "[]",
        "null",
        '{"statements": {}}',
        '{"answer": "yes"}',
        json.dumps({"statements": ["text"]}),
        json.dumps({"statements": [statement(text=3)]}),
        json.dumps({"statements": [statement(text="  ")]}),
        json.dumps({"statements": [statement(quotes="x")]}),
        json.dumps({"statements": [statement(quotes=[{"passage": "1", "quote": "x"}])]}),
        json.dumps({"statements": [statement(quotes=[{"passage": True, "quote": "x"}])]}),
        json.dumps({"statements": [statement(quotes=[{"passage": 1}])]}),
        json.dumps({"statements": [statement(quotes=[{"passage": 1, "quote": "y" * 20_000}])]}),
        json.dumps({"statements": [statement()] * 51}),
        '{"statements": [{"text": "cut off',
        "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_anything_else_is_malformed_and_not_repaired(text: str) -> None:
    with pytest.raises(MalformedReply) as caught:
        read_reply(text)
    assert str(caught.value)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_reply_raises_anything_but_its_own_error(text: str) -> None:
    with suppress(MalformedReply):
        read_reply(text)


def test_characters_that_cannot_be_stored_go() -> None:
    claims = read_reply('{"statements": [{"text": "a\\u0000\\ud800b", "quotes": []}]}')
    assert claims[0].text == "ab"
