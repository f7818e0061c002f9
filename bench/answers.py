"""Does an extract answer, and does it abstain? `python bench/answers.py [en de ru]`.

XQuAD with the passages of 48 groups left out: their questions are hard unanswerables, since the
article is there through its other paragraphs. Passages are found by BM25 in memory, so that the
figures speak of choosing and abstaining alone. Belongs here: the table that
`answer.extract.LEAST_COVERAGE` was decided on. Needs KB_TEST_DATA; about a minute of CPU.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kb_resources.answer.extract import Terms, question_words, sentences, weighed
from kb_resources.lexical import analyze
from kb_resources.retrieve import Hit

QUESTIONS = 200
K = 8
THRESHOLDS = (0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)


@dataclass(frozen=True)
class Outcome:
    """Whether one question could be answered, the best sentence's share, whether it is right."""

    answerable: bool
    share: float
    right: bool


def rows(folder: Path, name: str, lang: str) -> list[dict[str, Any]]:
    lines = (folder / name).read_text("utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["lang"] == lang]


def hit_of(row: dict[str, Any], number: int, lang: str) -> Hit:
    title, text = row["title"].replace("_", " "), row["text"]
    return Hit(
        rank=number, scope="xquad", document_id=row["_id"], version=1, digest="0" * 64,
        passage_id=row["_id"], title=title, heading_path=(title,), page=None, locator=None,
        byte_start=0, byte_end=len(text.encode()), char_start=0, char_end=len(text),
        language=lang, valid_from=None, valid_until=None, source=row["_id"],
        media_type="text/plain", context=title, text=text,
    )  # fmt: skip


def best_of(terms: Terms, hits: Sequence[Hit]) -> tuple[float, str]:
    rated = [(0.0, 0, "")]
    for number, hit in enumerate(hits, 1):
        above = analyze(hit.context, hit.language).terms
        for sentence in sentences(number, hit.text):
            lexemes = analyze(sentence.text, hit.language).terms
            rated.append((terms.share(lexemes, above), -number, sentence.text))
    share, _, text = max(rated)
    return share, text


def measure(folder: Path, lang: str) -> list[Outcome]:
    out = set(json.loads((folder / "unanswerable_groups.json").read_text())["groups"])
    kept = [r for r in rows(folder, "corpus.jsonl", lang) if r["_id"].rsplit("-", 1)[0] not in out]
    hits = [hit_of(row, 1, lang) for row in kept]
    held = [analyze(hit.text, lang, context=hit.context) for hit in hits]
    frequencies = Counter(lexeme for found in held for lexeme in found.terms)
    questions = random.Random(1).sample(rows(folder, "queries.jsonl", lang), QUESTIONS)
    outcomes = []
    for question in questions:
        terms = weighed(question_words(question["text"]), frequencies, len(kept))
        scores = [
            -sum(w for forms, w in terms.words if not forms.isdisjoint(found.terms))
            for found in held
        ]
        order = sorted(range(len(kept)), key=lambda at: (scores[at], at))[:K]
        share, text = best_of(terms, [replace(hits[at], rank=n) for n, at in enumerate(order, 1)])
        about = question["meta"]
        outcomes.append(Outcome(about["group"] not in out, share, about["answer"] in text))
    return outcomes


def main() -> None:
    folder = Path(os.environ["KB_TEST_DATA"]) / "data" / "retrieval" / "xquad-en-de-ru"
    print("lang  at    answered  of those right  unanswerable answered")
    for lang in sys.argv[1:] or ("en", "de", "ru"):
        outcomes = measure(folder, lang)
        can = [o for o in outcomes if o.answerable]
        cannot = [o for o in outcomes if not o.answerable]
        for at in THRESHOLDS:
            said = [o for o in can if o.share >= at]
            right = sum(o.right for o in said) / max(1, len(said))
            wrongly = sum(o.share >= at for o in cannot) / len(cannot)
            print(
                f"{lang:4}  {at:.2f}  {len(said) / len(can):8.0%}  {right:14.0%}  {wrongly:21.0%}"
            )


if __name__ == "__main__":
    main()
