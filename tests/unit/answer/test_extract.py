"""Answers without a model: the right sentence, cited to the character, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.answer.extract import extract, question_words, sentences, weighed
from kb_resources.answer.ground import Claim, ClaimedQuote, ground
from kb_resources.retrieve import Hit

from .test_context import hit

HANDBOOK = (
    "# Leave\n\nAnnual leave is 25 working days. Up to five days may be carried over, "
    "e.g. after a long illness. Ask your manager.\n\n"
    "- Sick notes are due on day three.\n- Parents may work from home.\n\n"
    "| Grade | Days |\n| --- | --- |\n| Senior staff | 30 |"
)


def said(question: str, *hits: Hit) -> list[str]:
    terms = weighed(question_words(question), {}, 100)
    return [statement.text for statement in extract(terms, hits)]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many working days of annual leave are there?", "Annual leave is 25 working days."),
        ("When are sick notes due?", "Sick notes are due on day three."),
        ("May parents work from home?", "Parents may work from home."),
        ("How many days for a senior?", "| Grade | Days |\n| Senior staff | 30 |"),
    ],
)
def test_the_sentence_that_speaks_of_it_answers(question: str, answer: str) -> None:
    assert said(question, hit(HANDBOOK))[0] == answer


@pytest.mark.parametrize(
    "question", ["What does a parking permit cost?", "Who won the race?", "", "?!", "is the of"]
)
def test_what_no_sentence_speaks_of_is_not_answered(question: str) -> None:
    assert said(question, hit(HANDBOOK)) == []


def test_words_of_another_form_and_language_are_the_same_words() -> None:
    text = "Zaposleni imaju pravo na godišnji odmor. Plata se isplaćuje poslednjeg dana."
    german = "Der Urlaub beträgt 25 Arbeitstage. Das Gehalt kommt am Monatsende."
    serbian = replace(hit(text), language="sr", context="Pravilnik")
    assert said("Ко има право на годишњи одмор?", serbian) == [
        "Zaposleni imaju pravo na godišnji odmor."
    ]
    assert said("Wie viele Arbeitstage Urlaub?", replace(hit(german), language="de"))[0] == (
        "Der Urlaub beträgt 25 Arbeitstage."
    )


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("en", "Parking costs 3 euros.", "How much is parking?"),
        ("de", "Resturlaub verfällt am 31. März.", "Bis wann gilt Resturlaub?"),
        ("bg", "Отпускът е 25 дни.", "Колко дълго трае отпускът?"),
        ("ru", "Гарантия действует два года.", "Сколько длится гарантия?"),
        ("sr", "Отказни рок је месец дана.", "Колико дуго траје отказни рок?"),
        ("hr", "Otkazni rok iznosi dva tjedna.", "Koliki je otkazni rok?"),
        ("mk", "Гаранцијата трае две години.", "Колкава е гаранцијата?"),
        ("sl", "Dopust znaša 25 dni.", "Kolikšen je dopust?"),
    ],
)
def test_what_asks_for_a_date_or_a_figure_need_not_stand_in_the_answer(
    language: str, text: str, question: str
) -> None:
    asked = replace(hit(text), language=language, context="")
    assert said(question, asked) == [text]


def test_a_word_that_asks_in_one_language_is_a_topic_in_another() -> None:
    assert len(question_words("Who was wounded in the war?")) == 2
    assert len(question_words("Was war im Angebot?")) == 1


TABLE = (
    "| Country | Per day | Rate |\n|---|---|---|\n| Austria | 50. Half on travel days | 1.17 |\n"
    "| Oman | 9 | 1 |"
)


def test_a_header_row_is_no_answer_and_stands_with_the_row_that_is() -> None:
    found = hit("See below.\n\n" + TABLE)
    assert said("country rate", found) == []
    (row,) = extract(weighed(question_words("per day rate in Austria"), {}, 10), [found])
    assert [one.quote for one in row.citations] == [TABLE.split("\n")[0], TABLE.split("\n")[2]]
    assert row.text == "\n".join(one.quote for one in row.citations)
    for one in row.citations:
        assert found.text[one.char_start : one.char_end] == one.quote
    assert ground(
        [Claim(row.text, tuple(ClaimedQuote(1, one.quote) for one in row.citations))], [found.text]
    ).statements[0].citations == row.citations  # fmt: skip


def test_a_row_too_short_to_be_a_quote_is_quoted_with_the_table_above_it() -> None:
    (row,) = extract(weighed(question_words("rate in Oman"), {}, 10), [hit(TABLE)])
    assert [one.quote for one in row.citations] == [TABLE]


def test_rows_of_another_table_have_its_header_row_or_none() -> None:
    text = TABLE + "\n\nOther:\n\n| Left over from the page before | 7 |"
    assert [one.head is not None for one in sentences(1, text)] == [True, True, False]


def test_less_of_the_question_is_enough_in_a_passage_that_search_is_sure_of() -> None:
    question, text = "When do employees take remaining leave?", "Remaining leave ends in March."
    sure, doubted, unknown = (
        said(question, replace(hit(text, title="x"), relevance=relevance))
        for relevance in (1.0, 0.0, None)
    )
    assert sure == [text]
    assert (doubted, unknown) == ([], [text])


def test_rare_words_of_the_question_count_more_than_common_ones() -> None:
    words = question_words("company zebra")
    common, rare = words
    terms = weighed(words, dict.fromkeys(common, 90), 100)
    assert terms.share(rare, ()) > 0.9
    assert terms.share(common, ()) < 0.1


def test_a_heading_alone_answers_nothing() -> None:
    found = hit("# Parking permit\n\nSee the office.", title="Parking permit")
    assert said("What does a parking permit cost?", found) == []


@given(st.text(max_size=200))
def test_sentences_are_slices_in_order_and_disjoint(text: str) -> None:
    at = 0
    for sentence in sentences(1, text):
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.start >= at
        assert sentence.text == sentence.text.strip()
        at = sentence.end


@pytest.mark.requirement("O-43")
@given(st.lists(st.sampled_from(["Leave is 25 days. ", "Leave ends. ", "x\n\n", "- leave\n"])))
def test_every_extract_is_the_documents_own_text(parts: list[str]) -> None:
    found = hit("".join(parts) or "x")
    for statement in extract(weighed(question_words("leave days"), {}, 10), [found]):
        (citation,) = statement.citations
        assert found.text[citation.char_start : citation.char_end] == citation.quote
        assert statement.supported
