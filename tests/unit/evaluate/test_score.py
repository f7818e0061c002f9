"""Judging a ranking: gains, ranks, and that a finer chunker changes neither."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources import evaluate
from kb_resources.errors import InputError
from kb_resources.evaluate import Found, Label, Question, bootstrap
from kb_resources.evaluate.score import Judged, judge
from kb_resources.retrieve.outline import node_id


@dataclass(frozen=True)
class At:
    """A hit's place."""

    document_id: str
    heading_path: tuple[str, ...] = ()
    byte_start: int = 0
    byte_end: int = 10
    version: int = 1
    source: str = "somewhere"


def judged(labels: list[Label], places: list[At], gain: Any = "binary") -> Judged:
    question = Question("q", "?", labels=tuple(labels))
    return judge(question, Found(places), gain=gain, cut=10)


def test_ndcg_is_that_of_the_book() -> None:
    # Grades 3, 2, 3, 0, 1, 2 (Järvelin and Kekäläinen's example, gain as given): by hand.
    labels = [
        Label(name, grade=grade) for name, grade in zip("abcef", (3, 2, 3, 1, 2), strict=True)
    ]
    found = judged(labels, [At(name) for name in "abcdef"], gain="graded")
    gains = {1: 7, 2: 3, 3: 7, 5: 1, 6: 3}
    best = sum(gain / math.log2(rank + 1) for rank, gain in enumerate((7, 7, 3, 3, 1), 1))
    assert found.ndcg == pytest.approx(
        sum(gain / math.log2(rank + 1) for rank, gain in gains.items()) / best
    )
    assert (found.first, found.recall) == (1, 1.0)


def test_what_answers_a_label() -> None:
    place = At("leave", ("Leave", "Sick"), 100, 200, version=3, source="hr/leave.md")
    for label, fits in (
        (Label("leave"), True),
        (Label("hr/leave.md"), True),
        (Label("other"), False),
        (Label("leave", section=("Leave",)), True),
        (Label("leave", section=("Leave", "Sick")), True),
        (Label("leave", section=("Sick",)), False),
        (Label("leave", node=node_id(("Leave",))), True),
        (Label("leave", node=node_id(("Sick",))), False),
        (Label("leave", span=(199, 400)), True),
        (Label("leave", span=(200, 400)), False),
        (Label("leave", span=(199, 400), version=2), False),
    ):
        assert (judged([label], [place]).first == 1) is fits, label


@given(
    st.lists(st.integers(0, 11), min_size=1, max_size=30),
    st.sets(st.integers(0, 11), min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_a_finer_chunker_changes_no_figure(
    order: list[int], relevant: set[int], pieces: int
) -> None:
    """Each place cut into several, in any number, is judged as the whole was."""
    labels = [Label("d", section=(f"s{n}",)) for n in sorted(relevant)]
    whole = [At("d", (f"s{n}",), n * 100, n * 100 + 100) for n in order]
    cut = [
        At("d", place.heading_path, place.byte_start + i * 25, place.byte_start + i * 25 + 25)
        for place in whole
        for i in range(pieces)
    ]
    one, other = judged(labels, whole), judged(labels, cut)
    assert (one.ndcg, one.first, one.recall) == (other.ndcg, other.first, other.recall)
    assert 0 <= one.ndcg <= 1


def test_figures_by_slice_language_and_honesty() -> None:
    questions = [
        Question("a", "?", "en", "exact", (Label("a"),)),
        Question("b", "?", "de", "exact", (Label("b"),)),
        Question("c", "?", "de", "paraphrase", (Label("c"),)),
        Question("n", "?", "de", "unanswerable"),
        Question("m", "?", "de", "unanswerable"),
    ]
    answers = {
        "a": Found([At("a")], nothing=True),
        "b": Found([At("x"), At("b")]),
        "c": Found([At("c")]),
        "n": Found([At("x")], nothing=True, relevance=0.1),
        "m": Found([At("x")]),
    }
    made = evaluate.run("s", questions, lambda question: answers[question.id])
    assert made.overall.means["r_1"] == pytest.approx(2 / 3)
    assert made.overall.means["mrr"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert made.overall.means["lost"] == 0.5
    assert (made.overall.unanswerable, made.overall.nothing) == (2, 0.5)
    assert made.figures["language:de"].means["r_1"] == 0.5
    assert made.figures["slice:exact"].questions == 2
    assert set(made.figures) == {
        *("all", "language:de", "language:en", "slice:exact", "slice:paraphrase"),
        "slice:unanswerable",
    }
    with pytest.raises(InputError, match="No question falls"):
        evaluate.run("s", questions[:1], lambda _: Found([]), half=_other(questions[0].half))


def _other(half: str) -> Any:
    return "test" if half == "dev" else "dev"


def test_intervals_are_seeded_and_hold_the_mean() -> None:
    values = list(np.random.default_rng(3).random(400))
    low, high = bootstrap.interval(values) or (0, 0)
    assert (low, high) == bootstrap.interval(values)
    mean, error = float(np.mean(values)), float(np.std(values)) / 20
    assert low < mean < high
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.15)  # the normal approximation
    assert bootstrap.interval([1.0]) is None


def rows(values: list[float], *, lacking: int = 0) -> list[Judged]:
    return [
        Judged(f"q{n}", "en", "other", True, value, 1, 1.0, False, None, ())
        for n, value in enumerate(values[lacking:], lacking)
    ]


def test_the_gate_lets_noise_through_and_no_loss() -> None:
    chance = np.random.default_rng(5)
    base = list(chance.random(300) * 0.5 + 0.4)
    noisy = [
        min(1.0, max(0.0, value + change))
        for value, change in zip(base, chance.normal(0, 0.05, 300), strict=True)
    ]
    assert evaluate.not_worse(None, rows(base)).passed
    assert evaluate.not_worse(rows(base), rows(noisy)).passed
    lost = evaluate.not_worse(rows(base), rows([value - 0.02 for value in base]))
    assert not lost.passed
    assert "-0.0200" in lost.reason
    wild = [value - 0.04 * (n % 2) * 2 for n, value in enumerate(base)]
    assert not evaluate.not_worse(rows(base), rows(wild)).passed
    assert not evaluate.not_worse(rows(base), rows(base, lacking=1)).passed
    found = evaluate.compare(rows(base), rows([value - 0.02 for value in base]))
    assert found.differences["ndcg_10"].high < 0
    assert found.differences["ndcg_10"].p == 0
    with pytest.raises(InputError, match="in common"):
        evaluate.compare(rows(base), [])
