"""The labelled corpus: what is caught and what is left alone, every text of it.

`bench/scan.py` prints the figures; this holds the bars in every run of the suite.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from kb_resources.model import Verdict
from kb_resources.scan import Scanner, default_packs

DATA = os.environ.get("KB_TEST_DATA")
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA, reason="KB_TEST_DATA is unset: the scan's corpus is NOT tested"),
]
PROSE = (
    "law", "news", "source_code", "readme", "rtl_text", "api_doc", "minified", "unicode",
    "html_base64", "latent_context_clean",
)  # fmt: skip
MULTILINGUAL = ("ml_bare", "ml_embedded", "ml_crosslang")
CAUGHT = {Verdict.BLOCK, Verdict.QUARANTINE}


@cache
def verdicts() -> dict[tuple[int, str, str], list[Verdict]]:
    """Verdicts by label, kind and language."""
    path = Path(str(DATA)) / "data/injection/attacks-and-benign.jsonl"
    scanner = Scanner(default_packs())
    found: dict[tuple[int, str, str], list[Verdict]] = defaultdict(list)
    for line in path.read_text("utf-8").split("\n"):
        if line:
            row = json.loads(line)
            verdict = scanner.scan(row["text"]).verdict
            found[row["label"], row["kind"], row["lang"]].append(verdict)
    return found


def share(
    label: int, kinds: tuple[str, ...], wanted: set[Verdict], language: str | None = None
) -> float:
    found = [
        verdict
        for (its_label, kind, its_language), those in verdicts().items()
        if its_label == label and kind.startswith(kinds) and language in {None, its_language}
        for verdict in those
    ]
    assert found
    return sum(verdict in wanted for verdict in found) / len(found)


@pytest.mark.requirement("P-43")
@pytest.mark.parametrize(
    ("kinds", "bar"),
    [
        (("obf_",), 0.98),
        (MULTILINGUAL, 0.95),
        (("agentdojo", "greshake", "latent_injection", "aib_"), 0.9),
        (("jailbreak_inthewild",), 0.85),
        (("bidi_code", "homoglyph_code", "zero_width_code"), 0.98),
    ],
)
def test_attacks_are_caught(kinds: tuple[str, ...], bar: float) -> None:
    assert share(1, kinds, CAUGHT) >= bar


@pytest.mark.requirement("P-43")
def test_multilingual_attacks_are_caught_in_every_language() -> None:
    languages = {language for label, kind, language in verdicts() if kind.startswith(MULTILINGUAL)}
    assert len(languages) >= 8
    missed = {one: share(1, MULTILINGUAL, {Verdict.CLEAN}, one) for one in languages}
    assert {one: value for one, value in missed.items() if value > 0.1} == {}


@pytest.mark.requirement("P-44", "P-45")
def test_nothing_harmless_is_blocked() -> None:
    assert share(0, ("",), {Verdict.BLOCK}) == 0


@pytest.mark.requirement("P-45")
def test_laws_and_news_come_out_clean() -> None:
    assert share(0, ("law", "news"), {Verdict.CLEAN}) == 1


@pytest.mark.requirement("P-43", "P-44")
@pytest.mark.parametrize(
    ("kinds", "bar"),
    [(PROSE, 0.005), (("security_doc",), 0.05), (("ml_benign", "bastion_benign"), 0.05)],
)
def test_little_that_is_harmless_is_held(kinds: tuple[str, ...], bar: float) -> None:
    assert share(0, kinds, {Verdict.QUARANTINE}) <= bar
