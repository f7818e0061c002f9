"""Lexical analysis: what finds what."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.lexical import (
    ANALYZER_VERSION,
    analyze,
    analyze_query,
    analyzer,
    fold,
    names_identifier,
    tokens,
)
from kb_resources.lexical.analyzer import DIMENSIONS, MAX_TERMS, QUERY_TERMS, lexeme_number


def matches(question: str, passage: str, language: str, languages: list[str] | None = None) -> bool:
    """Whether the question shares a lexeme with the passage."""
    return bool(analyze_query(question, languages).keys() & analyze(passage, language).terms.keys())


@pytest.mark.parametrize(
    ("question", "passage", "language"),
    [
        ("contract", "two contracts", "en"),
        ("Vertrag", "die Verträge", "de"),
        ("Eigentum", "Wohnungseigentum", "de"),
        ("договор", "по договорам", "ru"),
        ("елка", "ёлка", "ru"),
        ("уговор", "у уговорима", "sr"),
        ("ugovor", "у уговорима", "sr"),
        ("уговор", "u ugovorima", "hr"),
        ("ugovori", "u ugovorima", "hr"),
        ("mlijeko", "млеко", "sr"),
        ("Djordje", "Ђорђе", "sr"),
        ("Dorde", "Ђорђе", "sr"),
        ("šćuka", "scuka", "hr"),
        ("договорът", "с договори", "bg"),
        ("учениците", "ученик", "bg"),
        ("договорот", "договори", "mk"),
        ("учениците", "ученик", "mk"),
        ("pogodba", "v pogodbah", "sl"),
        ("zakonskega", "zakonski", "sl"),
        ("Straße", "STRASSE", "de"),
        ("resume", "résumé", "en"),
        ("ﬁle", "file", "en"),
        ("so\u00adft\u200bhyphen", "softhyphen", "en"),
        ("ＡＢＣ１２", "abc12", "en"),
    ],
)
def test_forms_of_a_word_find_each_other(question: str, passage: str, language: str) -> None:
    assert matches(question, passage, language)


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("INV-2024/0815", "Rechnung INV-2024/0815 vom Mai"),
        ("inv-2024/0815", "(INV-2024/0815)."),
        ("0815", "INV-2024/0815"),
        ("§ 15 Abs. 2", "nach § 15 Abs. 2 Satz 1"),
        ("v1.2.3", "release v1.2.3, fixed"),
        ("1.2.3", "v1.2.3"),
        ("jane.doe@example.com", "write to jane.doe@example.com."),
        ("example.com", "jane@example.com"),
        ("getUserName", "call getUserName()"),
        ("user name", "getUserName"),
        ("XMLHttpRequest", "an XMLHttpRequest object"),
        ("max_tokens", "set max_tokens=400"),
        ("AB123C", "part AB123C fits"),
        ("email", "your e-mail"),
        ("e-mail", "your email"),
        ("1000", "1,000 items"),
        ("C++", "written in C++"),
        ("WHO", "the WHO says"),
        ("東京", "東京都"),
        ("O'Brien", "by O’Brien"),
        ("2016/679", "Regulation (EU) 2016/679"),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(question: str, passage: str) -> None:
    for language in ("en", "de", "und"):
        assert matches(question, passage, language)


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("§ 15", "§ 15a"),
        ("§ 433 BGB", "§ 434 BGB"),
        ("INV-2024/0815", "INV-2024/0816"),
        ("v1.2.3", "v1.2.4"),
        ("Article 5", "Article 50"),
        ("C++", "C"),
    ],
)
def test_an_identifier_weighs_more_in_its_own_passage_than_in_a_neighbours(
    near: str, far: str
) -> None:
    question = analyze_query(near)

    def shared(passage: str) -> int:
        return len(question.keys() & analyze(passage, "en").terms.keys())

    assert shared(near) > shared(far)


def test_stop_words_of_the_passages_language_are_left_out_but_not_acronyms() -> None:
    assert analyze("the and of with", "en").terms == {}
    assert analyze("die und mit", "de").terms == {}
    assert analyze("и у на", "sr").terms == {}
    assert lexeme_number("it") in analyze("the IT department", "en").terms
    assert lexeme_number("it") not in analyze("put it there", "en").terms


def test_a_question_of_function_words_alone_still_looks_for_something() -> None:
    assert analyze_query("to be or not to be")
    assert analyze_query("was ist das")


def test_function_words_tell_the_language_and_leave_other_stems_out() -> None:
    short = analyze_query("statements")
    long = analyze_query("which of the statements did they make")
    english = analyze_query("which of the statements did they make", ["en"])
    assert long == english
    assert len(short) > 1


def test_several_languages_stay_where_the_question_does_not_tell() -> None:
    assert matches("Gewinn profits", "der Gewinn", "de")
    assert matches("Gewinn profits", "no profit", "en")


def test_the_context_is_indexed_with_its_weight_and_not_counted_as_length() -> None:
    plain = analyze("leave is thirty days", "en")
    with_context = analyze("leave is thirty days", "en", context="Handbook", context_weight=0.5)
    added = with_context.terms.keys() - plain.terms.keys()
    assert [with_context.terms[number] for number in added] == [0.5]
    assert with_context.length == plain.length


def test_at_most_a_thousand_lexemes_the_most_frequent_kept() -> None:
    text = "kept " * 3 + " ".join(f"word{n}x" for n in range(5000))
    terms = analyze(text, "und").terms
    assert len(terms) == MAX_TERMS
    assert terms[lexeme_number("kept")] == 3
    assert len(analyze_query(text)) <= QUERY_TERMS


def test_a_question_with_a_digit_names_an_identifier() -> None:
    assert names_identifier("was steht in § 433 BGB")
    assert names_identifier("INV-2024/0815")
    assert not names_identifier("how many days of leave")
    assert not names_identifier("")


def test_the_version_names_the_unicode_data() -> None:
    assert unicodedata.unidata_version in ANALYZER_VERSION


def test_lexeme_numbers_are_stable() -> None:
    assert [lexeme_number(word) for word in ("alpha", "ћирилица", "§\x1f15")] == [
        *(lexeme_number("alpha"), lexeme_number("ћирилица"), lexeme_number("§\x1f15"))
    ]


@given(
    st.text(max_size=300), st.sampled_from(["en", "de", "sr", "hr", "ru", "bg", "mk", "sl", "x"])
)
def test_any_text_gives_numbers_in_range(text: str, language: str) -> None:
    found = analyze(text, language, context=text[:20])
    for number, frequency in [*found.terms.items(), *analyze_query(text).items()]:
        assert 1 <= number <= DIMENSIONS
        assert frequency > 0
    assert found.length <= sum(found.terms.values()) + 1e-6


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_a_text_finds_itself_under_its_own_language(text: str) -> None:
    for language in ("en", "sr", "bg", "sl", "und"):
        terms = analyze(text, language).terms
        if terms:
            assert terms.keys() & analyze_query(text, [language]).keys()


@given(st.text(max_size=80))
def test_unicode_form_and_case_make_no_difference_to_words(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    decomposed = unicodedata.normalize("NFD", text)
    assert analyze(composed, "en").terms == analyze(decomposed, "en").terms


PIECES = (
    *("Art.", "5", "(5)", "§", "§5", "15a,", "Abs.\u00a02", "—", "e-mail", "word", "(word),", "C#"),
    *("INV-2024/0815.", "O’Brien’s", "«слово»", "Đorđe", "1.000,5", "x5y1", "…", "'", "a_b"),
)
BY_RUNS = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=30)


@given(
    BY_RUNS, st.sampled_from([" ", "\n", "\u00a0", ""]), st.sampled_from(["en", "de", "sr", "xx"])
)
def test_a_text_has_the_lexemes_of_its_runs_in_the_order_of_its_runs(
    parts: list[str], between: str, language: str
) -> None:
    text = between.join(parts)
    expected = analyzer._of_runs(tokens.runs(fold.visible(text)), language)
    assert list(analyzer._occurrences(text, language).items()) == list(expected.items())


def test_no_space_and_nothing_stripped_off_a_word_is_part_of_a_run() -> None:
    between = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]
    assert [c for c in (*between, *tokens.AROUND_WORDS) if tokens.runs(c)] == []
    assert [c for c in between if tokens.runs(f"a{c}b") != ["a", "b"]] == []
