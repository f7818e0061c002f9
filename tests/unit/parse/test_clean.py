"""What a reader sees of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.parse.clean import one_line, visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\u200bb\u2060c\ufeffd", "abcd"),
        ("soft\u00adhyphen", "softhyphen"),
        ("pay \u202enow\u202c \u2066x\u2069", "pay now x"),
        ("a\U000e0041\U000e0042b", "ab"),
        ("a\x00b\x07c\x9f", "abc"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("me\u200dan", "mean"),
        ("слу\u200cчай", "случай"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("heart ❤\ufe0f", "heart ❤\ufe0f"),
        ("a\ufe0f\ufe0fb", "ab"),
        ("x\U000e0100\U000e0101", "x"),
        ("葛\U000e0100飾", "葛\U000e0100飾"),
        ("line\nbreak\ttab", "line\nbreak\ttab"),
    ],
)
def test_only_what_is_seen_stays(text: str, seen: str) -> None:
    assert visible(text) == seen


def test_white_space_of_any_kind_collapses() -> None:
    assert one_line("  a\u00a0\u2003b\r\n\t c\u2028d ") == "a b c d"


@given(st.text())
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = one_line(text)
    assert one_line(once) == once
    once.encode()
