"""The gate before a swap: what it lets through, what it holds back, and whose questions it asks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kb_resources import embed
from kb_resources.errors import PolicyError
from kb_resources.evaluate import read_questions
from kb_resources.stages import evaluation, reembed, swap_quality
from tests.integration.embed.fake_server import FakeServer
from tests.integration.line.conftest import Bench
from tests.integration.reembed.conftest import OTHER, SERVED, held

TOPICS = (
    *("leave", "travel", "office", "budget", "safety", "training", "pensions", "parking"),
    *("canteen", "laptops", "visitors", "holidays", "sickness", "overtime", "insurance", "keys"),
)


@pytest.fixture
def library(bench: Bench, tmp_path: Path) -> Bench:
    for number, topic in enumerate(TOPICS):
        bench.write(f"{topic}.md", f"# {topic.title()}\n\nRule {number} is about {topic}.\n")
    line = bench.line
    line.run_all(line.register_many([bench.request(f"{topic}.md") for topic in TOPICS]))
    folder = bench.settings.home / "evaluation"
    folder.mkdir(parents=True)
    rows = [
        {"id": topic, "text": f"what holds for {topic}?", "relevant": [{"document": f"{topic}.md"}]}
        for topic in TOPICS
    ]
    (folder / "acme.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return bench


@pytest.mark.requirement("B-19")
def test_a_shadow_is_asked_the_scopes_own_questions_too(library: Bench) -> None:
    caps = library.line.capabilities
    folder = library.settings.home / "evaluation"
    reembed.start(caps, "acme", OTHER, actor="test")
    reembed.fill_scope(caps, "acme")
    found = reembed.measure(caps, "acme", folder=folder)
    assert (found.questions, found.labelled, found.problems) == (16, 16, ())
    assert found.recall == found.live_recall == 1.0
    assert found.live_ndcg is not None
    assert found.ndcg is not None
    assert found.ndcg >= found.live_ndcg - 0.01
    without = reembed.measure(caps, "acme")
    assert (without.labelled, without.ndcg) == (0, None)
    reembed.swap(caps, "acme", actor="test", folder=folder)
    # What is evaluated from now on is the generation that readers search.
    ran = evaluation.run_scope(
        caps,
        "acme",
        read_questions(folder / "acme.jsonl"),
        evaluation.Wanted("acme.jsonl", "test", mode="vector"),
    )
    assert ran.kept.config["model"] == held(library).live
    assert ran.made.overall.means["r_5"] >= 0.9


@pytest.mark.requirement("B-19")
def test_a_model_that_does_not_know_the_texts_is_held_back(
    library: Bench, fake: FakeServer, models_dir: Path
) -> None:
    caps = library.line.capabilities
    embed.prepare(models_dir, SERVED, endpoint=fake.endpoint())
    good, chance = fake.vectors, np.random.default_rng(3)

    def noise(texts: list[str]) -> list[list[float]]:
        # Canaries stay what they were: it is the same model to whoever checks its identity.
        kept = good(texts)
        rows: list[list[float]] = chance.normal(size=(len(texts), 1024)).tolist()
        return kept if len(texts) == 16 else [*rows[:-1], kept[-1]]

    fake.vectors = noise
    reembed.start(caps, "acme", SERVED, actor="test")
    assert not reembed.fill_scope(caps, "acme").failed
    folder = library.settings.home / "evaluation"
    found = reembed.measure(caps, "acme", folder=folder)
    assert found.recall < found.live_recall
    assert any("known passages" in problem for problem in found.problems)
    assert found.labelled == len(TOPICS)  # whose words still find everything
    live = held(library).live
    with pytest.raises(PolicyError) as caught:
        reembed.swap(caps, "acme", actor="test", folder=folder)
    assert caught.value.code == "quality_gate"
    assert "kb reembed check" in str(caught.value)
    assert held(library).live == live


@pytest.mark.parametrize(
    ("numbers", "refused"),
    [
        ((64, 0.4, 1.0, 1.0), ""),
        ((64, 0.05, 1.0, 1.0), "agree to 5%"),
        ((64, 0.4, 1.0, 0.98), "finds 98% of 64"),
        ((64, 0.4, 1.0, 63 / 64), ""),  # one question more or less decides nothing
        ((1000, 0.4, 1.0, 0.985), "finds 98% of 1000"),
        ((1000, 0.4, 0.9, 0.99), ""),
        ((0, 1.0, 1.0, 1.0), ""),
    ],
)
def test_thresholds(numbers: tuple[int, float, float, float], refused: str) -> None:
    problems = "; ".join(swap_quality.judge(*numbers))
    assert refused in problems
    assert bool(problems) == bool(refused)


def test_lists_are_compared_by_what_they_share() -> None:
    a, b, c = (("d", name) for name in "abc")
    overlap, live, shadow = swap_quality.compare([a, b], [[a, b], [b, c]], [[b, a], [a, c]])
    assert (overlap, live, shadow) == (0.75, 1.0, 0.5)
    assert swap_quality.compare([], [], []) == (1.0, 1.0, 1.0)


def test_a_question_is_made_of_heading_and_first_words() -> None:
    passage = swap_quality.SampledPassage(
        "p", ["Leave", "Carry over"], "Leave that is left " * 9, "c", "Leave", "d", 1, "0" * 64
    )
    assert swap_quality.question_of(passage).startswith("Carry over Leave that is left")
    assert len(swap_quality.question_of(passage).split()) == 14
    bare = replace(passage, heading_path=[], title=None)
    assert swap_quality.question_of(bare).startswith("Leave that")
