"""Own attacks in the carriers they come in, and own texts that only look like them.

The first set was written before the rules were last changed and measured before and after; of the
second it is said in `docs/adr/0005` what the scan made of it before anybody looked.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kb_resources.model import Verdict
from kb_resources.scan import Scanner, default_packs
from tests.unit.scan.test_disguises import ANY, LATIN

FOLDER = Path(__file__).parent / "own"
LANGUAGES = ("en", "de", "ru", "bg", "mk", "sr", "hr", "sl")
SETS = ("", "-later")
SCANNER = Scanner(default_packs())


def rows(sort: str, later: str) -> list[dict[str, Any]]:
    read = tomllib.loads((FOLDER / f"{sort}{later}.toml").read_text("utf-8"))
    made: list[dict[str, Any]] = read["attack" if sort == "attacks" else "benign"]
    return made


def text_of(row: dict[str, Any]) -> str:
    """The text as a document has it, with what stands in << >> disguised."""
    disguise = (ANY | LATIN)[row["disguise"]] if "disguise" in row else None
    if disguise is None:
        return str(row["text"])
    hide = disguise
    return re.sub("<<(.*?)>>", lambda found: hide(found[1]), row["text"], flags=re.DOTALL)


def verdicts(sort: str, later: str, language: str = "") -> list[Verdict]:
    return [
        SCANNER.scan(text_of(row)).verdict
        for row in rows(sort, later)
        if language in {"", row["language"]}
    ]


def share(found: list[Verdict], wanted: set[Verdict]) -> float:
    return sum(verdict in wanted for verdict in found) / len(found)


CAUGHT = {Verdict.BLOCK, Verdict.QUARANTINE}


@pytest.mark.requirement("P-43")
@pytest.mark.parametrize("language", LANGUAGES)
def test_nine_of_ten_own_attacks_are_caught(language: str) -> None:
    assert len(rows("attacks", "")) >= 60
    assert share(verdicts("attacks", "", language), CAUGHT) >= 0.9


@pytest.mark.requirement("P-43")
def test_most_attacks_of_the_second_set_are_caught() -> None:
    assert share(verdicts("attacks", "-later"), CAUGHT) >= 0.85


@pytest.mark.requirement("P-44")
@pytest.mark.parametrize("later", SETS)
def test_no_own_harmless_text_is_blocked(later: str) -> None:
    assert share(verdicts("benign", later), {Verdict.BLOCK}) == 0


@pytest.mark.requirement("P-44")
def test_own_harmless_texts_are_held_only_where_they_quote_order_or_play() -> None:
    """Security policies that quote an attack, and fiction in the second person."""
    held = [
        row["sort"]
        for later in SETS
        for row in rows("benign", later)
        if SCANNER.scan(text_of(row)).verdict is not Verdict.CLEAN
    ]
    allowed = re.compile(
        "security policy|Sicherheitsrichtlinie|(безбедносна )?политика|bezbednosna|sigurnosna|"
        "varnostna|Roman|roman|роман|escape room|vodnik|CLI help"
    )
    assert [sort for sort in held if not allowed.match(sort)] == []
