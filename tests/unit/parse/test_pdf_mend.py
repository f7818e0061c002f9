"""Small repairs of extracted PDF text: what is mended and what stays as the page shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.parse.pdf.mend import (
    GARBAGE,
    WordBreaks,
    count_garbage,
    join_lines,
    plain,
    squeeze,
    without_garbage,
)

WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöüčšž", min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["the algo-", "rithms run"], "the algorithms run"),
        (["Verwaltungs\u00ad", "verfahren"], "Verwaltungsverfahren"),
        (["über\u00adsicht"], "übersicht"),
        (["Baden-", "Württemberg"], "Baden-Württemberg"),
        (["from 2019-", "2024 on"], "from 2019- 2024 on"),
        (["ein- und", "mehrfach"], "ein- und mehrfach"),
        (["слово-", "сочетание"], "словосочетание"),
        (["a dash -", "then more"], "a dash - then more"),
        (["  many   spaces ", "", "here"], "many spaces here"),
    ],
)
def test_lines_join_and_cut_words_come_together(lines: list[str], text: str) -> None:
    assert join_lines(lines) == text


@given(st.lists(WORDS, min_size=1, max_size=30))
def test_joining_loses_no_letter(words: list[str]) -> None:
    assert join_lines(words).split() == words


@pytest.mark.parametrize(
    ("raw", "shown"),
    [("e\ufb03cient", "efficient"), ("\ufb01eld", "field"), ("\uf0b7", "•"), ("a\x07b", "ab")],
)
def test_ligatures_symbols_and_controls_become_plain(raw: str, shown: str) -> None:
    assert plain(raw) == shown


def test_quotes_and_dashes_stay_as_printed() -> None:
    text = "„Zitat“ – ‘so’ — “and”"
    assert plain(text) == text


@pytest.mark.requirement("O-01")
@given(st.text())
def test_no_garbage_survives(text: str) -> None:
    broken = f"{text}\ufffd(cid:12)GLYPH<c=12,font=/F1>\ue123"
    assert count_garbage(broken) >= 4
    assert GARBAGE.search(without_garbage(text.replace("(", "").replace("<", ""))) is None


def test_glued_words_are_split_by_the_tokens_of_the_second_reader() -> None:
    breaks = WordBreaks(["the", "quick", "brown", "fox", "jumps", "over"])
    assert breaks.split("quickbrown") == "quick brown"
    assert breaks.split("thequickbrownfox") == "the quick brown fox"


@given(st.lists(WORDS, min_size=2, max_size=20))
def test_splitting_changes_nothing_but_spaces(tokens: list[str]) -> None:
    breaks = WordBreaks(tokens)
    for word in [*tokens, "".join(tokens[:2]), "".join(tokens)]:
        assert breaks.split(word).replace(" ", "") == word
    assert all(breaks.split(token) == token for token in tokens)


@given(st.text())
def test_squeezing_is_idempotent(text: str) -> None:
    once = squeeze(text)
    assert squeeze(once) == once
    assert "  " not in once
