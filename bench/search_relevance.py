"""Fits what a hit's signals say about its being right: `python bench/search_relevance.py`.

Each set is asked its own questions and, as questions without an answer, those of the other sets;
UDHR brings unanswerable ones of its own. The signals are those of the first hit of a search by the
product, its cosine and its share of the best possible BM25; the model is logistic, every pair of
sets weighing the same. Fitted on the dev half; the curve shows the test half too, so that the
threshold can be judged. Prints `kb_resources/retrieve/relevance.toml`. Needs KB_TEST_DATA.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import retrieval_sets as sets
import search as bench
from numpy.typing import NDArray

from kb_resources.evaluate import half_of
from kb_resources.retrieve import Hit, Retriever
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

SETS = (
    *("udhr-qa-8lang", "xquad-en-de-ru", "german-law", "cranfield-en", "gdpr-crosslingual"),
    "exams-parallel-hr-sr-de",
)
MODES = ("hybrid", "vector", "text")
MOST = 250
"""Questions of one set asked of another."""
LOST = 0.02
"""Right first hits of the dev half that the threshold may lose; the goal is .03 on any half."""
STEP = 0.05
"""Of the thresholds tried; the one taken is a step below the highest that keeps to `LOST`."""


@dataclass(frozen=True)
class Case:
    """The first hit of one question: signals, whether it is right, where it was asked."""

    asked: str
    searched: str
    half: str
    signals: tuple[float, float]
    right: bool


def cases(retriever: Retriever, mode: str, loaded: dict[str, sets.RetrievalSet]) -> Iterator[Case]:
    """Questions of each set asked of each; wrong first hits of answerable ones say nothing."""
    for asked, one in loaded.items():
        own = [(row, relevant) for _, row, relevant, tags in bench.questions(one) if not tags]
        none = [(row, {}) for row in one.queries if row["_id"].startswith("un-")]
        if not own:
            none = [(row, {}) for row in one.queries]
        for searched in loaded:
            given = [*own, *none] if asked == searched else [(row, {}) for row, _ in own or none]
            if asked == searched and not own:
                continue
            if asked != searched:
                given = random.Random(7).sample(given, min(MOST, len(given)))
            for row, _ in given:
                hits = retriever.search(
                    row["text"],
                    principal=bench.ASKER,
                    scope=searched,
                    mode=mode,
                    k=1,
                ).hits
                known = one.qrels.get(row["_id"], {}) if asked == searched else {}
                right = bool(hits) and known.get(hits[0].document_id, 0) > 0
                if right or not known:
                    half = half_of(row["_id"])
                    yield Case(asked, searched, half, signals(hits[:1]), right)


def signals(hits: Sequence[Hit]) -> tuple[float, float]:
    """Cosine and share of the first hit; a search that finds nothing has none."""
    if not hits:
        return 0.0, 0.0
    return hits[0].cosine or 0.0, hits[0].text_share or 0.0


def fit(found: Sequence[Case], mode: str) -> NDArray[np.float64]:
    """Bias and weights of cosine and share, `(3,)`, by Newton's method with a small ridge."""
    used = [0, *((1,) if mode != "text" else ()), *((2,) if mode != "vector" else ())]
    features = np.array([(1.0, *case.signals) for case in found])[:, used]
    right = np.array([case.right for case in found], float)
    groups = [(case.asked, case.searched, case.right) for case in found]
    size = Counter(groups)
    kinds = Counter(group[2] for group in size)
    weights = np.array([1 / size[group] / kinds[group[2]] for group in groups])
    weights *= len(weights) / weights.sum()
    centre, scale = features.mean(axis=0), features.std(axis=0)
    centre[0], scale[0] = 0.0, 1.0
    given = (features - centre) / scale
    held = np.zeros(len(used))
    for _ in range(50):
        chance = 1 / (1 + np.exp(-given @ held))
        slope = given.T @ (weights * (right - chance)) - 0.01 * held
        bend = (given * (weights * chance * (1 - chance))[:, None]).T @ given
        held += np.linalg.solve(bend + 0.01 * np.eye(len(used)), slope)
    made = np.zeros(3)
    made[used] = held / scale
    made[0] -= float((held / scale * centre).sum())
    return made


def relevance(case: Case, fitted: NDArray[np.float64]) -> float:
    """The estimate that `retrieve.relevance` would give."""
    return float(1 / (1 + np.exp(-(fitted[0] + fitted[1:] @ np.array(case.signals)))))


def curve(found: Sequence[Case], fitted: NDArray[np.float64], mode: str) -> float:
    """Print the curve; returns the threshold to take, by UDHR's dev half."""
    scores = [relevance(case, fitted) for case in found]
    chosen = 0.0
    print(f"{mode}: below t the answer is nothing; n: of unanswerable, l: of right first hits lost")
    for step in range(1, 19):
        threshold = step * STEP
        parts = []
        for half in ("dev", "test"):
            caught, lost = _shares(found, scores, "udhr-qa-8lang", half, threshold)
            parts.append(f"UDHR {half} n {caught:.2f} l {lost:.3f}")
            if half == "dev" and lost <= LOST:
                chosen = threshold - STEP
        for name in SETS[1:-1]:
            caught, lost = _shares(found, scores, name, None, threshold)
            parts.append(f"{name.split('-')[0]} n {caught:.2f} l {lost:.3f}")
        print(f"  t {threshold:.2f}  {'  '.join(parts)}", flush=True)
    return chosen


def _shares(
    found: Sequence[Case], scores: Sequence[float], name: str, half: str | None, threshold: float
) -> tuple[float, float]:
    """Of a set's unanswerable questions (UDHR: its own) caught, of its right first hits lost."""
    own = name.startswith("udhr")
    pairs = [
        (case, score)
        for case, score in zip(found, scores, strict=True)
        if case.searched == name and half in (None, case.half) and (case.asked == name or not own)
    ]
    caught = [score < threshold for case, score in pairs if not case.right]
    lost = [score < threshold for case, score in pairs if case.right]
    return sets.mean(caught), sets.mean(lost)


def main() -> int:
    """Load the sets, ask, fit each mode, print curve and file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, help="folder for the sets' vectors")
    parser.add_argument("--models", type=Path, default=Path(".kb/models"))
    parser.add_argument("--mode", action="append", choices=MODES, help="default: each of them")
    given = parser.parse_args()
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        print("KB_TEST_DATA is not set: the labelled sets are not here.")
        return 2
    model = bench.CachedEmbedder(given.models, given.cache)
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    server = EmbeddedServer(home / "home", settings=bench.VOLATILE)
    loaded = {}
    try:
        server.start()
        migrate(server.dsn("owner"))
        with Database.embedded(server, application_name="kb bench") as database:
            for name in SETS:
                one = loaded[name] = sets.read_set(Path(data) / "data" / "retrieval" / name)
                vectors = model.whole(
                    f"{name}.corpus", [sets.text_to_embed(row) for row in one.corpus], "passage"
                )
                model.whole(f"{name}.queries", [row["text"] for row in one.queries], "query")
                sets.publish(database, name, one.corpus, model_id=model.model_id, embedded=vectors)
            retriever = Retriever(database, embedder=lambda: model)
            lines = []
            for mode in given.mode or MODES:
                found = list(cases(retriever, mode, loaded))
                fitted = fit([case for case in found if case.half == "dev"], mode)
                below = curve(found, fitted, mode)
                if mode == "text":
                    continue  # printed above, and too weak to be used
                name = model.model_id.partition("@")[0]
                lines += [
                    *("", "[[calibration]]", f'model = "{name}"', f'mode = "{mode}"'),
                    f"bias = {fitted[0]:.3f}",
                    f"cosine = {fitted[1]:.3f}",
                    f"text_share = {fitted[2]:.3f}",
                    f"nothing_below = {below:.2f}",
                ]
            print("\n".join(lines))
    finally:
        server.destroy()
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
