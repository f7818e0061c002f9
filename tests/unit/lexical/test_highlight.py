"""Highlights: the words of a passage that its question found, where they stand as stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.lexical import analyze, analyze_query, highlights, surfaces
from kb_resources.lexical.fold import visible
from kb_resources.lexical.highlight import _runs
from kb_resources.lexical.tokens import run_matches, runs

AWKWARD = st.text(
    alphabet=st.sampled_from(
        "abcßéèäÖčđЖжйё 15§.-/ \u00ad\u200b\u0301\u0308ﬁ½ﬀ①Å\u00a0\n\u2028Ⅷ…\ud800가각ｆ＃+#'’x"
    ),
    max_size=60,
)


def marked(text: str, language: str, query: str) -> list[str]:
    return [text[a:b] for a, b in highlights(text, language, analyze_query(query).keys())]


@pytest.mark.requirement("P-76")
@pytest.mark.parametrize(
    ("language", "query", "text", "expected"),
    [
        ("en", "report a lost laptop", "Losses of laptops are reported.", ["laptops", "reported"]),
        ("de", "Wie viele Urlaubstage?", "Den Urlaubstagen folgt Arbeit.", ["Urlaubstagen"]),
        ("ru", "сколько дней отпуска", "Отпуск: 28 дней подряд.", ["Отпуск", "дней"]),
        ("sr", "godišnji odmor", "Годишњег одмора нема.", ["Годишњег", "одмора"]),
        ("hr", "trajanje odmora", "Godišnji odmor.", ["odmor"]),
        ("bg", "отпуск", "Отпуските се ползват.", ["Отпуските"]),
        ("mk", "одмор", "Одморот трае.", ["Одморот"]),
        ("sl", "dopust", "O dopustu odloča.", ["dopustu"]),
        ("de", "Was sagt § 15?", "Nach § 15 Abs. 2 und § 16.", ["§ 15"]),
        ("en", "invoice INV-2024/0815", "See INV-2024/0815, paid.", ["INV-2024/0815"]),
        (
            "de",
            "Kündigung",
            "Die Kün\u00addi\u00adgung \ufb01ndet statt.",
            ["Kün\u00addi\u00adgung"],
        ),
        ("en", "find", "They \ufb01nd it.", ["\ufb01nd"]),
        ("en", "café", "A cafe\u0301 nearby.", ["cafe\u0301"]),
        ("en", "of the and", "Nothing of the kind.", []),
        ("ru", "holiday entitlement", "Отпуск 28 дней.", []),
    ],
)
def test_words_are_marked_as_they_are_spelt(
    language: str, query: str, text: str, expected: list[str]
) -> None:
    assert marked(text, language, query) == expected


@given(AWKWARD, AWKWARD)
def test_spans_are_ordered_disjoint_and_inside(text: str, query: str) -> None:
    end_before = 0
    for start, end in highlights(text, "en", analyze_query(query).keys()):
        assert end_before <= start < end <= len(text)
        end_before = end


@given(AWKWARD)
def test_runs_are_those_that_the_index_holds(text: str) -> None:
    assert [word for word, _, _ in _runs(text)] == list(runs(visible(text)))


@given(AWKWARD)
def test_runs_stand_where_the_analyzer_finds_them(text: str) -> None:
    clean = visible(text)
    assert _runs(clean) == [(match.group(), *match.span()) for match in run_matches(clean)]


@given(AWKWARD, st.sampled_from(["en", "de", "ru", "sr", "und"]))
def test_every_lexeme_of_the_index_has_a_word(text: str, language: str) -> None:
    assert surfaces(text, language).keys() == analyze(text, language).terms.keys()
