"""Detectors: labels, determinism, what is too little, mixed texts, and the gate."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_resources.language import (
    DEFAULT_LANGUAGES,
    DefaultDetector,
    Detection,
    Detector,
    LangdetectDetector,
    language_gate,
)
from kb_resources.language.alphabet import encode_gram, fold_to_cyrillic, gram_codes, to_latin
from kb_resources.language.segments import MAX_PIECE_CHARS, MAX_SEGMENTS
from kb_resources.language.text import MAX_SAMPLE_CHARS
from kb_resources.model import DocumentState, Refusal

SENTENCES = {
    "en": "The council met on Tuesday and agreed that the old bridge must be repaired this year.",
    "de": "Der Gemeinderat tagte am Dienstag und beschloss, die alte Brücke heuer zu sanieren.",
    "bg": "Общинският съвет заседава във вторник и реши старият мост да бъде ремонтиран догодина.",
    "ru": "Городской совет собрался во вторник и решил, что старый мост надо починить в этом году.",
    "mk": "Советот на општината заседаваше во вторник и одлучи дека стариот мост ќе се поправи.",
    "sl": "Občinski svet je zasedal v torek in sklenil, da je treba stari most obnoviti še letos.",
    "hr": "Općinsko vijeće zasjedalo je u utorak i odlučilo da se stari most popravi tijekom "
    "ove godine, a tko ne dođe, dobit će izvješće iduće srijede.",
    "sr": "Скупштина општине заседала је у уторак и одлучила да се стари мост поправи у току "
    "ове године, а ко не дође, добиће извештај следеће среде.",
    "sr-Latn": "Skupština opštine zasedala je u utorak i odlučila da se stari most popravi u toku "
    "ove godine, a ko ne dođe, dobiće izveštaj sledeće srede.",
}


@pytest.fixture(scope="module", params=[DefaultDetector, LangdetectDetector])
def detector(request: pytest.FixtureRequest) -> Detector:
    made: Detector = request.param()
    return made


@pytest.mark.requirement("P-06")
@pytest.mark.parametrize("variant", SENTENCES)
def test_each_of_the_nine_variants_is_told_apart(detector: Detector, variant: str) -> None:
    found = detector.detect(SENTENCES[variant])
    assert found.label == variant.split("-")[0]
    assert found.script == ("Cyrl" if variant in {"bg", "ru", "mk", "sr"} else "Latn")


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Le conseil municipal s'est réuni mardi et a décidé de réparer le vieux pont.", "fr"),
        ("Міська рада зібралася у вівторок і вирішила, що старий міст треба полагодити.", "uk"),
        ("Mestské zastupiteľstvo zasadalo v utorok a rozhodlo, že starý most treba opraviť.", "sk"),
    ],
)
@pytest.mark.requirement("P-06")
def test_other_languages_keep_their_own_code(text: str, label: str) -> None:
    found = DefaultDetector().detect(text)
    assert found.label == label
    refusal = language_gate(found, DEFAULT_LANGUAGES)
    assert isinstance(refusal, Refusal)
    assert refusal.state is DocumentState.LANGUAGE_REFUSED
    assert refusal.details["language"] == label


@pytest.mark.requirement("P-06")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Three words only",
        "1,250.00 4471 99 % 2024-05-30 17:45 | 33 | 41",
        "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor "
        "incididunt ut labore et dolore magna aliqua. Ut enim ad minim veniam.",
        "\ud800\udfff \U000e0041 ♠♣♥♦",
        "word " * 5_000,
        "a" * 5_000,
        "Pellentesque habitant morbi tristique senectus et netus et malesuada fames ac turpis "
        "egestas. Vestibulum tortor quam, feugiat vitae, ultricies eget, tempor sit amet, ante.",
    ],
)
def test_too_little_language_is_undetermined_and_taken_in(detector: Detector, text: str) -> None:
    found = detector.detect(text)
    assert found.label == "und"
    assert language_gate(found, DEFAULT_LANGUAGES) == "und"


def test_the_same_text_gets_the_same_answer_every_time(detector: Detector) -> None:
    text = SENTENCES["sr-Latn"] + "\n\n" + SENTENCES["sl"]
    assert len({detector.detect(text) for _ in range(5)}) == 1


@pytest.mark.requirement("P-06")
def test_serbian_means_the_same_in_both_scripts() -> None:
    detector = DefaultDetector()
    latin = to_latin(SENTENCES["sr"].lower())
    assert detector.detect(latin).label == "sr"
    assert fold_to_cyrillic(latin) == SENTENCES["sr"].lower()


def test_a_mixed_document_lists_its_stretches() -> None:
    english = " ".join([SENTENCES["en"]] * 6)
    german = " ".join([SENTENCES["de"]] * 3)
    text = f"{english}\n\n{german}\n\n{english}"
    found = DefaultDetector().detect(text)
    assert found.label == "en"
    assert [s.label for s in found.segments] == ["en", "de", "en"]
    assert "Gemeinderat" in text[found.segments[1].char_start : found.segments[1].char_end]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=600))
def test_stretches_cover_any_text_in_order(text: str) -> None:
    found = DefaultDetector().detect(text)
    ends = [0, *(s.char_end for s in found.segments)]
    assert [s.char_start for s in found.segments] == ends[:-1]
    assert ends[-1] == len(text)
    assert 0.0 <= found.confidence <= 1.0


def test_a_book_is_sampled_not_read_whole() -> None:
    found = DefaultDetector().detect(SENTENCES["ru"] * 30_000)
    assert found.label == "ru"
    assert len(found.segments) == 1


def test_gate_lets_allowed_languages_pass() -> None:
    assert language_gate(Detection("hr", 0.9, "Latn"), {"hr", "sr"}) == "hr"


def test_letter_sequences_stop_at_word_borders() -> None:
    codes = gram_codes("аб вг")
    assert codes.shape == (4, 5)
    assert codes[1].tolist()[:3] == [encode_gram("б"), encode_gram("аб"), 0]
    assert codes[2].tolist()[1] == 0


@pytest.mark.requirement("P-06")
@pytest.mark.parametrize(
    "text",
    [
        "| col_a | col_b |\n| --- | --- |\n| 1.5 | test |\n| col_c | col_d |\n| TRUE | 3 |",
        "# Sheet\n\n| Name | Value |\n| --- | --- |\n| Berlin | 3 |\n\nend",
        "file:///SRV/shared/empty.html[23.03.2022 11:10:27] printed",
        "GET_A PUT_B GET_C DEL_D xkcd qwrt zxcv bnmj GET_A PUT_B hjkl wqtz pltr mnbv",
    ],
)
def test_lists_of_names_and_codes_are_in_no_language(text: str) -> None:
    assert DefaultDetector().detect(text).label == "und"


@pytest.mark.requirement("P-06")
@pytest.mark.parametrize(
    ("text", "name"),
    [("\u062d\u0628\u064a\u0628\u064a", "Arabic letters"), ("\ud55c\uad6d", "Korean letters")],
)
def test_few_words_in_letters_of_no_allowed_language_are_refused(text: str, name: str) -> None:
    found = DefaultDetector().detect(text)
    assert found.label == "und"
    refusal = language_gate(found, DEFAULT_LANGUAGES)
    assert isinstance(refusal, Refusal)
    assert name in refusal.reason
    assert language_gate(found, {*DEFAULT_LANGUAGES, "ar", "ko"}) == "und"


def test_short_stretches_do_not_pass_for_rare_languages() -> None:
    names = (
        "See Smith, Jones and Brown; Okafor, Nwosu and Bello; Garcia, Lopez and Diaz, 1994-2004. "
    )
    text = f"{' '.join([SENTENCES['en']] * 4)}\n\n{names * 3}\n\n{' '.join([SENTENCES['en']] * 4)}"
    assert {s.label for s in DefaultDetector().detect(text).segments} == {"en"}


@pytest.mark.requirement("P-06")
def test_other_processes_with_other_hash_seeds_answer_the_same() -> None:
    asked = json.dumps([*SENTENCES.values(), SENTENCES["hr"][:50], SENTENCES["sl"][:50]])
    program = (
        "import json, sys\n"
        "from kb_resources.language import DefaultDetector, LangdetectDetector\n"
        "texts = json.load(sys.stdin)\n"
        "for detector in (DefaultDetector(), LangdetectDetector()):\n"
        "    print([detector.detect(text) for text in texts])\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=asked,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_what_is_read_of_a_text_does_not_grow_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = DefaultDetector()
    read: list[int] = []
    ranked = DefaultDetector._ranked

    def counted(self: DefaultDetector, text: str) -> tuple[str, float]:
        read.append(len(text))
        return ranked(self, text)

    monkeypatch.setattr(DefaultDetector, "_ranked", counted)
    for size in (1_000_000, 5_000_000):
        read.clear()
        found = detector.detect((SENTENCES["mk"] + " ") * (size // 100))
        assert found.label == "mk"
        assert sum(read) <= MAX_SAMPLE_CHARS + MAX_SEGMENTS * MAX_PIECE_CHARS


@pytest.mark.requirement("P-06")
def test_slovak_typed_without_accents_is_not_taken_for_a_southern_language() -> None:
    found = DefaultDetector().detect("Start na historickom Karlovom moste Vo stvrtok 22.")
    assert found.label in {"sk", "cs", "und"}
