"""Instructions written for these tests, in eight languages: families that no rule was made from."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kb_resources.model import Verdict
from kb_resources.scan import Scanner, default_packs

FAMILIES = tomllib.loads((Path(__file__).parent / "authored.toml").read_text("utf-8"))
LANGUAGES = ("en", "de", "ru", "bg", "mk", "sr", "hr", "sl")


@pytest.mark.requirement("P-43")
@pytest.mark.parametrize("language", LANGUAGES)
def test_nine_of_ten_authored_instructions_are_caught(language: str) -> None:
    scanner = Scanner(default_packs())
    texts = [family[language] for family in FAMILIES.values()]
    caught = sum(scanner.scan(text).verdict is not Verdict.CLEAN for text in texts)
    assert caught / len(texts) >= 0.9
