"""Synonyms from a file: the question first, its language, complaints that name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb_resources.compose_answers import open_expander
from kb_resources.errors import InputError
from kb_resources.retrieve.expand import read_synonyms, variations
from kb_resources.settings import load_settings

TEXT = """
holiday = ["leave", "vacation"]
Ärger = ["Verdruss"]

[de]
urlaub = ["Ferien"]
war = ["gewesen"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "synonyms.toml"
    made.write_text(TEXT.replace("Ärger", '"Ärger"'), "utf-8")
    return made


@pytest.mark.requirement("W-33")
def test_a_setting_names_the_file_and_without_it_nothing_is_expanded(file: Path) -> None:
    assert open_expander(load_settings({"KB_HOME": "/x"})) is None
    expander = open_expander(load_settings({"KB_HOME": "/x", "KB_SYNONYMS": str(file)}))
    assert variations(expander, "Holiday in May") == [
        "Holiday in May",
        "leave in May",
        "vacation in May",
    ]
    assert variations(expander, "ärger") == ["ärger", "Verdruss"]
    assert variations(expander, "nothing of it") == ["nothing of it"]


def test_words_of_a_language_count_in_questions_that_may_be_in_it(file: Path) -> None:
    expander = read_synonyms(file)
    assert expander("Wie lange ist der Urlaub und wer war im Urlaub?")[0].startswith(
        "Wie lange ist der Ferien"
    )
    assert expander("urlaub") == ["Ferien"], "two words tell no language"
    assert expander("Who was at war and what is it to you?") == []


@pytest.mark.parametrize(("given", "variations_made"), [("", 3), ("variations = 5", 5)])
def test_as_many_variations_as_the_file_says(
    tmp_path: Path, given: str, variations_made: int
) -> None:
    many = ", ".join(f'"word{at}"' for at in range(9))
    file = tmp_path / "synonyms.toml"
    file.write_text(f"{given}\nholiday = [{many}]\n")
    assert len(read_synonyms(file)("holiday")) == variations_made


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("holiday = ", "no synonyms"),
        ('holiday = "leave"', "no list of words"),
        ("holiday = [1]", "no list of words"),
        ('holiday = [""]', "no list of words"),
        ('[xx]\nholiday = ["leave"]', "is none of"),
        ("variations = 0", "from 1 to 10"),
        ("variations = true", "from 1 to 10"),
    ],
)
def test_a_file_of_something_else_is_refused_by_name(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "synonyms.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=why) as refused:
        read_synonyms(file)
    assert refused.value.code == "bad_synonyms"
    assert "synonyms.toml" in refused.value.message


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_synonyms(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError):
        read_synonyms(tmp_path / "bytes.toml")
