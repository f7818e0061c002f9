"""Ranking quality on the labelled sets, by mode: `python bench/search.py`.

Every passage goes through ledger, gate and `put`; every question through `Retriever.search`.
Gain is binary, cuts are 10 (nDCG) and 1, 5 (a relevant passage is there); the pool is the whole
set. Ends with hybrid beside the better of its lists, by half of the questions (the dev half decides
defaults, the test half only reports), and with the goals. Belongs here: what is asked and the
tables. What does not: thresholds that a test enforces. Needs KB_TEST_DATA. `--text` leaves vectors
out; `--cache DIR` keeps the sets' vectors there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import retrieval_sets as sets
from numpy.typing import NDArray

from kb_resources import embed
from kb_resources.evaluate import half_of
from kb_resources.model import Principal
from kb_resources.retrieve import Retriever, SearchFilters
from kb_resources.retrieve.ranking import WORDS
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

SETS = (
    *("cranfield-en", "cisi-en", "xquad-en-de-ru", "german-law", "udhr-qa-8lang"),
    *("gdpr-crosslingual", "exams-parallel-hr-sr-de", "ntrex-8lang"),
)
ASKER = Principal("bench")
GOALS = (
    ("cranfield-en", "", "text", 0, "BM25 nDCG@10", 0.52),
    ("xquad-en-de-ru", "en", "hybrid", 0, "nDCG@10", 0.96),
    ("xquad-en-de-ru", "de", "hybrid", 0, "nDCG@10", 0.93),
    ("xquad-en-de-ru", "ru", "hybrid", 0, "nDCG@10", 0.90),
    ("german-law", "§", "hybrid", 2, "R@5", 0.97),
    ("exams-parallel-hr-sr-de", "hr to sr", "hybrid", 2, "R@5", 0.97),
    ("ntrex-8lang", "other languages", "hybrid", 2, "R@5", 0.85),
    ("udhr-qa-8lang", None, "hybrid", 2, "R@5", 0.98),
)
"""Set, group (None: all), mode, which score, its name, goal."""
Scores = list[tuple[str, str, tuple[float, float, float]]]
"""Group, question id, (nDCG@10, R@1, R@5)."""
VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class CachedEmbedder:
    """The default model, with the vectors of whole sets kept in a folder."""

    def __init__(self, models: Path, cache: Path | None) -> None:
        embed.prepare(models, embed.DEFAULT_MODEL)
        self._model = embed.load(models, embed.DEFAULT_MODEL, threads=os.cpu_count() or 1)
        self._cache = cache
        self._known: dict[str, NDArray[np.float32]] = {}
        self.model_id = self._model.model_id

    def whole(self, name: str, texts: Sequence[str], kind: embed.Kind) -> NDArray[np.float32]:
        """Vectors of a set's texts, computed once."""
        file = self._cache / f"{name}.npy" if self._cache else None
        if file is not None and file.exists():
            found: NDArray[np.float32] = np.load(file)
        else:
            found = self._model.embed(texts, kind)
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                np.save(file, found)
        if kind == "query":
            self._known.update(zip((text.strip() for text in texts), found, strict=True))
        return found

    def embed(self, texts: Sequence[str], kind: embed.Kind) -> NDArray[np.float32]:
        """As the model; questions of a loaded set come from memory."""
        if kind == "query" and all(text in self._known for text in texts):
            return np.array([self._known[text] for text in texts])
        return self._model.embed(texts, kind)


def questions(one: sets.RetrievalSet) -> list[tuple[str, sets.Row, dict[str, int], list[str]]]:
    """Group, question, relevant passages and languages to search ([] is all) of a set."""
    spoken = sorted({sets.language(row) for row in one.corpus})
    tags = {row["_id"]: row["lang"] for row in one.corpus}
    found = []
    for row in one.queries:
        relevant = dict(one.qrels.get(row["_id"], {}))
        own = {item: grade for item, grade in relevant.items() if grade == 2}
        if not relevant:
            continue
        if one.name.startswith(("xquad", "udhr")):
            found.append((row["lang"], row, own, []))
        elif one.name.startswith("ntrex"):
            if row["_id"].startswith("nth"):
                found.append((row["lang"], row, own, []))
            for target in ("en", "de", "bg", "ru", "sr", "mk", "hr", "sl"):
                if target != sets.language(row):
                    there = {item: 1 for item in relevant if tags[item].startswith(target)}
                    found.append(("other languages", row, there, [target]))
        elif one.name.startswith("exams"):
            others = [item for item in spoken if item != sets.language(row)]
            target = tags[next(iter(relevant))]
            found.append((f"{row['lang']} to {target}", row, relevant, others))
        elif one.name.startswith("german"):
            found.append(("§" if row["_id"].startswith("li") else "titles", row, relevant, []))
        else:
            found.append(("", row, relevant, []))
    return found


def evaluate(
    retriever: Retriever, one: sets.RetrievalSet, modes: Sequence[str], words: str
) -> dict[str, Scores]:
    """Print one line per group of questions and mode; returns every question's scores by mode."""
    found: dict[str, Scores] = {}
    for mode in modes:
        groups: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        started = time.process_time()
        asked = questions(one)
        for group, row, relevant, languages in asked:
            filters = SearchFilters(languages=languages) if languages else None
            hits = retriever.search(
                row["text"],
                principal=ASKER,
                scope=scope_of(one),
                mode=mode,
                words=words,
                k=10,
                filters=filters,
            ).hits
            ranked = [hit.document_id for hit in hits]
            scores = (
                sets.ndcg(ranked, relevant),
                sets.hit_at(ranked, relevant, 1),
                sets.hit_at(ranked, relevant, 5),
            )
            groups[group].append(scores)
            if relevant:
                found.setdefault(mode, []).append((group, row["_id"], scores))
        spent = (time.process_time() - started) / len(asked) * 1e3
        for group, of_group in sorted(groups.items()):
            line = [sets.mean([score[i] for score in of_group]) for i in range(3)]
            print(
                f"{one.name:24} {group:16} {mode:7} n={len(of_group):5}  nDCG@10 {line[0]:.3f}"
                f"  R@1 {line[1]:.3f}  R@5 {line[2]:.3f}  ({spent:.1f} ms client CPU)",
                flush=True,
            )
    return found


def compare_halves(found: dict[str, dict[str, Scores]]) -> None:
    """Print hybrid beside the better of its lists, by set and half."""
    for half in ("dev", "test"):
        margins, hybrids, betters = [], [], []
        for name, by_mode in found.items():
            means = {
                mode: sets.mean([s[0] for _, row, s in scores if half_of(row) == half])
                for mode, scores in by_mode.items()
            }
            better = max(means["text"], means["vector"])
            hybrids.append(means["hybrid"])
            betters.append(better)
            margins.append(means["hybrid"] - better)
            print(
                f"{half:4} {name:24} text {means['text']:.3f} vector {means['vector']:.3f} "
                f"hybrid {means['hybrid']:.3f} {margins[-1]:+.3f}"
            )
        print(
            f"{half:4} mean of sets: better list {sets.mean(betters):.3f}, hybrid "
            f"{sets.mean(hybrids):.3f}; worst {min(margins):+.3f} (goal -0.010)"
        )


def against_goals(found: dict[str, dict[str, Scores]]) -> None:
    """Print each goal beside what was measured, over both halves."""
    for name, group, mode, score, what, goal in GOALS:
        if name in found:
            values = [s[score] for g, _, s in found[name][mode] if group in (None, g)]
            got = sets.mean(values)
            said = "reached" if got >= goal else "MISSED"
            print(f"{name:24} {group or 'all':16} {what:13} {got:.3f}, goal {goal:.2f}: {said}")


def scope_of(one: sets.RetrievalSet) -> str:
    """Scope name of a set."""
    return one.name.lower()


def main() -> int:
    """Load the sets and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=SETS)
    parser.add_argument("--text", action="store_true", help="without vectors")
    parser.add_argument("--words", choices=WORDS, default="any", help="how many must be there")
    parser.add_argument("--cache", type=Path, help="folder for the sets' vectors")
    parser.add_argument("--models", type=Path, default=Path(".kb/models"))
    given = parser.parse_args()
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        print("KB_TEST_DATA is not set: the labelled sets are not here.")
        return 2
    model = None if given.text else CachedEmbedder(given.models, given.cache)
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    server = EmbeddedServer(home / "home", settings=VOLATILE)
    try:
        server.start()
        migrate(server.dsn("owner"))
        found: dict[str, dict[str, Scores]] = {}
        with Database.embedded(server, application_name="kb bench") as database:
            for name in given.names:
                one = sets.read_set(Path(data) / "data" / "retrieval" / name)
                vectors = None
                if model is not None:
                    texts = [sets.text_to_embed(row) for row in one.corpus]
                    vectors = model.whole(f"{name}.corpus", texts, "passage")
                    model.whole(f"{name}.queries", [row["text"] for row in one.queries], "query")
                sets.publish(
                    database,
                    scope_of(one),
                    one.corpus,
                    model_id=model.model_id if model else None,
                    embedded=vectors,
                )
                retriever = Retriever(database, embedder=(lambda: model) if model else None)
                modes = ("text", "vector", "hybrid") if model else ("text",)
                found[name] = evaluate(retriever, one, modes, given.words)
        if model:
            compare_halves(found)
            against_goals(found)
    finally:
        server.destroy()
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
