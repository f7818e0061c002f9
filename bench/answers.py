"""Does an extract answer, and does it abstain? `python bench/answers.py [en de ru]`.

XQuAD with the passages of 48 groups left out: their questions are hard unanswerables, since the
article is there through its other paragraphs. Passages are those that a search by the product
finds, by words alone (where hits have no relevance) and by both lists. Belongs here: the table
that `LEAST_COVERAGE` and `RELEVANT_COVERAGE` of `answer.extract` were decided on; the rows `+0.00`
are what ships. Needs KB_TEST_DATA; about one minute of CPU.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import retrieval_sets as sets
import search as bench

from kb_resources.answer.extract import least_coverage, question_words, rate, weighed
from kb_resources.lexical import analyze
from kb_resources.retrieve import Hit, Retriever
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

NAME = "xquad-en-de-ru"
QUESTIONS = 200
"""Of a language, and besides all those that cannot be answered."""
SHIFTS = (-0.1, -0.05, 0.0, 0.05, 0.1)


@dataclass(frozen=True)
class Outcome:
    """One question: whether it could be answered, and by how much each sentence is enough.

    Attributes:
        answerable: whether its passage is there.
        rated: share of the question less the least that is enough, share, whether it is right.
    """

    answerable: bool
    rated: tuple[tuple[float, float, bool], ...]

    def said(self, shift: float) -> bool | None:
        """Whether the answer is right were the least `shift` higher, None for an abstention."""
        enough = [(share, right) for above, share, right in self.rated if above >= shift]
        return max(enough, key=lambda one: one[0])[1] if enough else None


def outcome(
    hits: Sequence[Hit],
    question: sets.Row,
    frequencies: Mapping[int, int],
    passages: int,
    answerable: bool,
) -> Outcome:
    """Rate what was found as `extract` does."""
    terms = weighed(question_words(question["text"]), frequencies, passages)
    answer = question["meta"]["answer"]
    rated = (
        (share - least_coverage(hit.relevance), share, answer in sentence.text)
        for number, hit in enumerate(hits, 1)
        for share, sentence in rate(terms, number, hit)
    )
    return Outcome(answerable, tuple(rated))


def measure(retriever: Retriever, scope: str, mode: str, one: sets.RetrievalSet) -> list[Outcome]:
    """Outcomes of a language's questions."""
    rows = [(analyze(row["text"], row["lang"], context=row["title"])) for row in one.corpus]
    frequencies = Counter(lexeme for found in rows for lexeme in found.terms)
    chosen = random.Random(1).sample(one.queries, QUESTIONS)
    kept = {row["_id"].rsplit("-", 1)[0] for row in one.corpus}
    chosen += [q for q in one.queries if q["meta"]["group"] not in kept and q not in chosen]
    return [
        outcome(
            retriever.search(row["text"], principal=bench.ASKER, scope=scope, mode=mode).hits,
            row,
            frequencies,
            len(rows),
            row["meta"]["group"] in kept,
        )
        for row in chosen
    ]


def of_language(whole: sets.RetrievalSet, out: Sequence[str], lang: str) -> sets.RetrievalSet:
    """The set in one language, without the passages that are left out."""
    corpus = [
        {**row, "title": row["title"].replace("_", " ")}
        for row in whole.corpus
        if row["lang"] == lang and row["_id"].rsplit("-", 1)[0] not in out
    ]
    queries = [row for row in whole.queries if row["lang"] == lang]
    return sets.RetrievalSet(whole.name, corpus, queries, {})


def table(lang: str, mode: str, outcomes: Sequence[Outcome]) -> None:
    """Print a line for each shift of the least coverage."""
    can = [one for one in outcomes if one.answerable]
    cannot = [one for one in outcomes if not one.answerable]
    for shift in SHIFTS:
        said = [found for one in can if (found := one.said(shift)) is not None]
        wrongly = sum(one.said(shift) is not None for one in cannot)
        print(
            f"{lang:4}  {mode:6}  {shift:+.2f}  {len(said) / len(can):8.0%}  "
            f"{sum(said) / max(1, len(said)):14.0%}  {sum(said) / len(can):12.0%}  "
            f"{wrongly / len(cannot):21.0%}"
        )


def main() -> int:
    """Load the set once for each language, ask, print."""
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        print("KB_TEST_DATA is not set: the labelled set is not here.")
        return 2
    folder = Path(data) / "data" / "retrieval" / NAME
    whole = sets.read_set(folder)
    out = json.loads((folder / "unanswerable_groups.json").read_text("utf-8"))["groups"]
    model = bench.CachedEmbedder(Path(".kb/models"), None)
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    server = EmbeddedServer(home / "home", settings=bench.VOLATILE)
    print("lang  mode    least  answered  of those right  of all right  unanswerable answered")
    try:
        server.start()
        migrate(server.dsn("owner"))
        with Database.embedded(server, application_name="kb bench") as database:
            for lang in sys.argv[1:] or ("en", "de", "ru"):
                one = of_language(whole, out, lang)
                vectors = model.whole(lang, [sets.text_to_embed(r) for r in one.corpus], "passage")
                sets.publish(database, lang, one.corpus, model_id=model.model_id, embedded=vectors)
                retriever = Retriever(database, embedder=lambda: model)
                for mode in ("text", "hybrid"):
                    table(lang, mode, measure(retriever, lang, mode, one))
    finally:
        server.destroy()
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
