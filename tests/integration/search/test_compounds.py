"""German compounds: found by their parts where the spelling shows the join, reported as a slice."""

from __future__ import annotations

import pytest

from kb_resources import evaluate
from kb_resources.evaluate import Label, Question
from kb_resources.evaluate.searching import searcher
from kb_resources.model import Principal

from .conftest import World

TEXTS = {
    "nehmer": "Der Versicherungsnehmer zahlt den Beitrag im Voraus.",
    "amt": "Das Wohnungsamt stellt die Bescheinigung aus.",
    "urlaub": "Der Jahresurlaub beträgt dreißig Tage.",
    "reise": "Dienstreisen werden vorher beantragt.",
}


@pytest.mark.requirement("O-26")
def test_a_part_finds_the_compound_and_the_slice_says_how_often(world: World) -> None:
    for name, text in TEXTS.items():
        world.publish(name, [text], language="de")
    questions = [
        Question("c1", "Wer schließt eine Versicherung ab?", "de", "compound", (Label("nehmer"),)),
        Question("c2", "Wohnung gesucht", "de", "compound", (Label("amt"),)),
        Question("c3", "Urlaub", "de", "compound", (Label("urlaub"),)),
        Question("e1", "Dienstreisen beantragen", "de", "exact", (Label("reise"),)),
    ]
    ask = searcher(world.retriever(), world.scope, Principal("test"), mode="text")
    found = evaluate.run("s", questions, ask)
    by_slice = {name: one for name, one in found.figures.items() if name.startswith("slice:")}
    assert set(by_slice) == {"slice:compound", "slice:exact"}
    # `Jahresurlaub` shows no join: only a dictionary knows it, and meaning closes the gap.
    assert by_slice["slice:compound"].questions == 3
    assert by_slice["slice:compound"].means["r_1"] == pytest.approx(2 / 3)
    assert by_slice["slice:exact"].means["r_1"] == 1.0
