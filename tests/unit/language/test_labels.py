"""What may be named as a scope's language is what a detector answers with."""

from __future__ import annotations

import pytest

from kb_resources.errors import InputError
from kb_resources.language import DEFAULT_LANGUAGES, LABELS, check_labels, default
from kb_resources.settings import load_settings


def test_the_labels_are_those_of_the_detectors_models() -> None:
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    other = DetectorFactory()
    other.load_profile(PROFILES_DIRECTORY)
    short = {label.split("-")[0] for label in other.get_lang_list()}
    own = set(default._model().nb_classes) - default._NO_LANGUAGE - {"bs"}
    assert own | short == LABELS
    assert set(DEFAULT_LANGUAGES) <= LABELS


@pytest.mark.parametrize("code", ["all", "und", "bs", "EN", "", "de-AT"])
def test_a_code_that_no_text_is_told_to_be_in_is_refused_with_those_that_are(code: str) -> None:
    check_labels(["de", "fr"])
    with pytest.raises(InputError) as caught:
        check_labels(["de", code])
    assert caught.value.code == "unknown_language"
    assert " de " in caught.value.next_step


def test_the_installations_languages_are_held_to_the_same() -> None:
    assert load_settings({"KB_LANGUAGES": "de, fr"}).languages == ("de", "fr")
    with pytest.raises(InputError, match="all"):
        load_settings({"KB_LANGUAGES": "de,all"})
