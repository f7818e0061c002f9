"""Answers without a model: the right sentence, cited to the character, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.answer.extract import extract, question_words, sentences, weighed
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
        ("How many days for a senior?", "| Senior staff | 30 |"),
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
