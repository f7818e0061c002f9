"""What the candidates of the text list leave out: `python bench/search_candidates.py`.

Passages become candidates by the words of a question that few passages have: at most a tenth of
the scope, or a fixed number where that is more (500 once, 200 since migration 0028). The sets' own
BM25 is computed here, outside the database, for several such numbers; none may cost a right hit.
Belongs here: that one number. What does not: ranking quality as it is shipped (`search.py`). Needs
KB_TEST_DATA and no model.
"""

from __future__ import annotations

import math
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import retrieval_sets as sets
import search as bench

from kb_resources.lexical import analyze, analyze_query
from kb_resources.store.passages import K1, TYPICAL_LENGTH, B

LIMITS = (500, 200, 100)
"""The first is what the others are held against."""
DEPTH = 100
Postings = Mapping[int, list[tuple[int, float]]]


def postings(one: sets.RetrievalSet) -> Postings:
    """Lexeme to passages and their saturated term frequencies."""
    made = [
        analyze(r["text"] or ".", sets.language(r), context=r.get("title") or "")
        for r in one.corpus
    ]
    average = (50 * TYPICAL_LENGTH + sum(each.length for each in made)) / (50 + len(made))
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for place, each in enumerate(made):
        norm = K1 * (1 - B + B * each.length / average)
        for lexeme, count in each.terms.items():
            found[lexeme].append((place, count * (K1 + 1) / (count + norm)))
    return found


def compare(one: sets.RetrievalSet) -> None:
    """Print a line for each limit."""
    by_lexeme, total = postings(one), len(one.corpus)
    spoken = [sets.language(row) for row in one.corpus]
    scores: dict[int, list[tuple[float, float]]] = defaultdict(list)
    differ: dict[int, int] = defaultdict(int)
    lost: dict[int, int] = defaultdict(int)
    read: dict[int, int] = defaultdict(int)
    asked = bench.questions(one)
    for _, row, relevant, languages in asked:
        lexemes = analyze_query(row["text"])
        held = {lexeme: by_lexeme.get(lexeme, []) for lexeme in lexemes}
        bm25: dict[int, float] = defaultdict(float)
        for lexeme, weight in lexemes.items():
            df = len(held[lexeme])
            idf = math.log(1 + (total - df + 0.5) / (df + 0.5))
            for place, value in held[lexeme]:
                bm25[place] += weight * idf * value
        usual: list[int] = []
        for limit in LIMITS:
            rare = [lexeme for lexeme in lexemes if len(held[lexeme]) <= max(0.1 * total, limit)]
            places = {place for lexeme in rare or lexemes for place, _ in held[lexeme]}
            read[limit] += len(places)
            if languages:
                places = {place for place in places if spoken[place] in languages}
            top = sorted(places, key=lambda place: (-bm25[place], place))[:DEPTH]
            usual = usual or top
            differ[limit] += top[:10] != usual[:10]
            lost[limit] += len(set(usual) - set(top))
            ranked = [one.corpus[place]["_id"] for place in top[:10]]
            if relevant:
                scores[limit].append(
                    (sets.ndcg(ranked, relevant), sets.hit_at(ranked, relevant, 5))
                )
    for limit in LIMITS:
        means = [sets.mean([score[i] for score in scores[limit]]) for i in (0, 1)]
        print(
            f"{one.name:24} {limit:4}  nDCG@10 {means[0]:.4f}  R@5 {means[1]:.4f}  other first"
            f" ten in {differ[limit]} of {len(asked)}, {lost[limit] / len(asked):.2f} of the first"
            f" hundred lost, {read[limit] / len(asked):.0f} candidates",
            flush=True,
        )


def main() -> int:
    """Compare on every set."""
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        print("KB_TEST_DATA is not set: the labelled sets are not here.")
        return 2
    for name in sys.argv[1:] or bench.SETS:
        compare(sets.read_set(Path(data) / "data" / "retrieval" / name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
