"""Sentence ends in eight languages: abbreviations, citations, ordinals, quotes, hostile input."""

from __future__ import annotations

import tomllib
from importlib import resources
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.chunk.sentences import last_sentence_break, sentence_breaks

# A bar marks each place where a sentence ends; nowhere else may one be found.
EXAMPLES = [
    # English
    "He agreed. |She did not. |Why? |Nobody knows!",
    "See Art. 5 and No. 12 of the Act. |Fig. 3 shows it; cf. p. 7.",
    "Mr. Smith met Dr. J. R. Brown at 5 p.m. |They left early.",
    "Tools, paper, etc. are in room 4. |It is near the U.S. office.",
    "It works with e.g. Linux and i.e. Debian. |The price is $5.50. |Pay now.",
    'He said "Go." |Then he left (quickly). |The end.',
    "There were 30. |The rest came later.",
    "In Grace v. Sessions they won. |Acme Ltd. makes pumps. |Acme Inc. |The other firm closed.",
    # German
    "Nach Art. 5 Abs. 1 lit. a DSGVO gilt das. |Vgl. § 15 Nr. 3 Satz 2.",
    "Das kostet z. B. Vieles. |D. h. niemand zahlt. |Siehe i. V. m. Anlage 2.",
    "Am 3. Oktober 1990 und im 19. Jahrhundert. |Heute nicht mehr.",
    "Bis zum 1. Januar 2024. |Danach gilt § 7 ff. |Der Rest bleibt.",
    "Frau Dr. Meier und Prof. Kurz kamen ca. Mitte Mai. |Es waren 30. |Die Zahl stieg.",
    "Das BGBl. I S. 2954 enthält Rn. 14. |Das ist Abs. 2 S. 1 HS. 2.",
    "Die Firma zahlt 3 Mio. |Euro sind es nicht.",
    "Es gelten: 1. § 433 Absatz 1, 2. § 312a. |Das steht im ABl. EU Nr. L 399.",
    # Bulgarian
    "Съгласно чл. 5, ал. 2, т. 3 от закона т. нар. Служител има права. |Това е всичко.",
    "През 2024 г. |Новият закон влезе в сила. |В гр. София и на ул. Шипка е тихо.",
    "Обн., ДВ, бр. 5 от 2020 г., изм., бр. 7 от 2021 г. |Това е краят.",
    "Вж. стр. 12 и сл. |Хартия, моливи и др. |Остават в шкафа.",
    # Russian
    "Согласно ст. 15 ч. 2 п. 3 это возможно. |Иванов и др. |Работники вправе отказаться.",
    "В г. Москве живут 12 млн. человек. |В 2024 г. |Компания выросла.",
    "А. С. Пушкин родился в 1799 г. |Он писал стихи, т. е. был поэтом.",
    "Бумага, ручки и т. д. |Всё лежит в шкафу. |См. рис. 4 и табл. 2.",
    # Serbian, both scripts
    "Према чл. 12. ст. 1. Закона о раду то важи. |Нпр. запослени има право.",
    "Ово траје од 1. јануара 2024. |После тога важи нови ред, итд.",
    "Prema čl. 12. st. 1. Zakona o radu to važi. |Npr. zaposleni ima pravo.",
    "Cena je 20 din. |Ona raste svake god. i nikad ne pada.",
    # Macedonian
    "Според чл. 5 ст. 2 т. 3 од Законот тоа важи, т.е. Одлуката останува. |Крај.",
    "Во 2024 год. |Компанијата порасна. |Моливи, хартија и др. |Тоа е сè.",
    # Croatian
    "Prema čl. 5. st. 2. Zakona to vrijedi. |Npr. radnik ima pravo na odmor itd. |Kraj.",
    "Tvrtka d.o.o. |Ona posluje od 15. lipnja 2001. |Tako je i danas.",
    "Vidi str. 12 i tab. 4. |To je sve. |Dr. Horvat i prof. Babić dolaze.",
    # Slovenian
    "V 5. členu je določeno. |Po 159. členu ZDR-1 npr. Delavec ima pravico.",
    "Podjetje d.o.o. |To je vse. |Dne 1. januarja 2024 itd. |Konec.",
    "Glej št. 7, str. 12 in Ur. l. RS. |Dr. Novak in g. Kos prideta.",
    # Words that are abbreviations elsewhere
    "Never mind. |She got up. |He said no. |That is a gem.",
    "На следващия ден. |Той дойде след няколко дни. |Плати в евро. |Край.",
    "Vidio sam ga. |Ona ima kos. |To traje dana. |Kraj.",
    # Numbers and marks at the start of a line
    "1. The first rule\n2. The second rule\n3. The third rule",
    "1\\. The first clause applies. |2\\. The second does not.",
    "Version 2.10.1 is out. |Use 3.5 mm. |See https://example.org/a.b?c=D for it.",
    "Wait... |What? |No… |Yes.",
    "Kant schrieb ihn 1781. |Ludwig XIV. war tot.",
]


def cut(text: str) -> str:
    bounds = [0, *sentence_breaks(text), len(text)]
    return "|".join(text[a:b] for a, b in pairwise(bounds))


@pytest.mark.requirement("O-04")
@pytest.mark.parametrize("marked", EXAMPLES)
def test_sentences_end_where_a_reader_would_say(marked: str) -> None:
    assert cut(marked.replace("|", "")) == marked


def test_a_part_is_cut_as_if_it_stood_alone() -> None:
    text = "Ignored. Before. First one. Second one. After. Ignored."
    start, end = text.index("First"), text.index("After")
    assert sentence_breaks(text, start, end) == [text.index("Second")]


def test_ideographic_stops_need_no_space() -> None:
    assert cut("これは文です。次の文です！終わり。") == "これは文です。|次の文です！|終わり。"


@given(st.text(alphabet='aBя.!?… \n"»)1IVт', max_size=200))
def test_breaks_ascend_inside_the_text_and_follow_white_space(text: str) -> None:
    breaks = sentence_breaks(text)
    assert breaks == sorted(set(breaks))
    assert all(0 < at < len(text) and text[at - 1].isspace() for at in breaks)


PIECES = [
    "Haus",
    "usw",
    "z. B",
    "т. нар",
    "Art",
    "et al",
    "5",
    "IV",
    "a",
    ".",
    "?!",
    "»",
    ")",
    " ",
    "\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.data())
def test_the_last_break_beyond_a_place_is_the_last_of_all_breaks_there(text: str, data) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    after = data.draw(st.integers(start, end))
    beyond = [at for at in sentence_breaks(text, start, end) if at > after]
    assert last_sentence_break(text, start, end, after) == (beyond[-1] if beyond else None)


@pytest.mark.parametrize(
    "unit", [".", ". ", "a.", "A. ", "?)", "1. ", ". . ", "\"'", "(.", "….)", "т. "]
)
def test_hostile_repetition_takes_linear_time(unit: str, cpu_seconds) -> None:
    text = unit * (300_000 // len(unit))
    with cpu_seconds() as spent:
        sentence_breaks(text)
    assert spent() < 5  # .1 to .8 on an idle machine; quadratic work takes minutes


def test_the_word_list_is_lower_case_without_final_stops_and_complete() -> None:
    source = resources.files("kb_resources.chunk").joinpath("abbreviations.toml")
    data = tomllib.loads(source.read_text("utf-8"))
    assert set(data) == {"en", "de", "bg", "ru", "sr", "hr", "mk", "sl"}
    for classes in data.values():
        assert set(classes) == {"never", "number", "unit", "may_end", "starters"}
        for word in (word for words in classes.values() for word in words):
            assert word == word.lower().strip(". ")
