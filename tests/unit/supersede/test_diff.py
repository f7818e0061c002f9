"""Differences: nothing is lost, and a changed word is shown as a word."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.supersede import Hunk, diff

_LINES = st.lists(
    st.sampled_from(["", "a", "b", "# Leave", "thirty days", "thirty two days", "Ž, §", "\x0b"]),
    max_size=12,
).map("\n".join)


def _words(period: int) -> str:
    return " ".join(f"w{number % period}" for number in range(30_000))


@given(_LINES, _LINES)
def test_both_texts_can_be_put_together_from_the_hunks(old: str, new: str) -> None:
    hunks = diff(old, new)
    assert "".join(h.text for h in hunks if h.op != "insert") == old
    assert "".join(h.text for h in hunks if h.op != "delete") == new
    for before, after in pairwise(hunks):
        assert before.op != after.op
        assert (before.op, after.op) != ("insert", "delete")
    assert all(h.text for h in hunks)


@given(_LINES)
def test_equal_texts_have_no_change(text: str) -> None:
    assert diff(text, text) == ((Hunk("equal", text),) if text else ())


def test_a_changed_word_is_shown_as_a_word() -> None:
    old = "# Leave\n\nThirty days of paid leave.\n\nAsk us.\n"
    new = "# Leave\n\nTwenty days of fully paid leave.\n\nAsk us.\n"
    assert [(h.op, h.text) for h in diff(old, new) if h.op != "equal"] == [
        ("delete", "Thirty"),
        ("insert", "Twenty"),
        ("insert", " fully"),
    ]


def test_a_rewritten_paragraph_is_not_cut_into_words() -> None:
    changes = [h for h in diff("alpha beta gamma\n", "one two three four\n") if h.op != "equal"]
    assert [h.text for h in changes] == ["alpha beta gamma\n", "one two three four\n"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n" * 30_000, "x\n" + "\n" * 20_000 + "y"),
        ("a\nb\n" * 15_000, "b\nc\na\n" * 15_000),
        (_words(997), _words(991)),
    ],
)  # fmt: skip
def test_large_texts_full_of_repetition_stay_cheap(old: str, new: str) -> None:
    started = time.process_time()
    hunks = diff(old, new)
    assert time.process_time() - started < 5
    assert "".join(h.text for h in hunks if h.op != "insert") == old
