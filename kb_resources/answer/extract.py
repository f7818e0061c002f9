"""An answer without a model: the sentences of the passages that speak of what was asked.

Belongs here: choosing sentences and abstaining. What does not: searching. A sentence answers when
it holds enough of the question's words, rare ones counting more (IDF, Spärck Jones 1972); words
in the title and headings above it count in part. Nothing is phrased anew, so nothing can be wrong
but the choice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kb_resources.answer.ground import MIN_QUOTE, Citation, GroundedStatement
from kb_resources.chunk.sentences import sentence_breaks
from kb_resources.lexical import analyze, analyze_query
from kb_resources.lexical.tokens import runs
from kb_resources.retrieve.hit import Hit

MAX_SENTENCES = 3
CONTEXT_SHARE = 0.5
"""What a word in the title or headings counts beside one in the sentence."""
LEAST_COVERAGE = 0.45
"""Share of the question's weight below which no sentence answers it; see bench/answers.py."""
NEAR_BEST = 0.85
"""Further sentences are as good as this share of the best."""

_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+")
_BLOCK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•>|#]|\d{1,3}[.)][ \t]))")
_HEADING = re.compile(r"#{1,6}[ \t]")
_RULER = re.compile(r"[|\s:-]*")
_TABLE_HEAD = re.compile(r"^(\|.*)\n[ \t]*\|[ \t|:-]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage.

    Attributes:
        passage: 1-based number of the passage.
        start: in the passage's text, code points.
        end: exclusive.
        text: the passage's own words in that span.
    """

    passage: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What a question asks for: per word its lexemes and its weight."""

    words: tuple[tuple[frozenset[int], float], ...]

    @property
    def total(self) -> float:
        """Weight of all words."""
        return sum(weight for _, weight in self.words)

    def share(self, lexemes: Collection[int], context: Collection[int]) -> float:
        """How much of the question a sentence with its headings holds, 0 to 1."""
        found = 0.0
        for forms, weight in self.words:
            if not forms.isdisjoint(lexemes):
                found += weight
            elif not forms.isdisjoint(context):
                found += weight * CONTEXT_SHARE
        return found / self.total if self.words else 0.0


def question_words(question: str) -> list[frozenset[int]]:
    """The lexemes of each word of a question that is not a stop word, each word once."""
    asked = analyze_query(question).keys()
    words: dict[frozenset[int], None] = {}
    for run in runs(question):
        forms = frozenset(analyze_query(run).keys() & asked)
        if forms:
            words[forms] = None
    return list(words)


def weighed(
    words: Sequence[frozenset[int]], frequencies: Mapping[int, int], passages: int
) -> Terms:
    """Weights by how rare each word is in the scope.

    Args:
        words: from `question_words`.
        frequencies: passages of the scope that hold a lexeme.
        passages: of the scope.
    """
    made = []
    for forms in words:
        df = max((frequencies.get(lexeme, 0) for lexeme in forms), default=0)
        total = max(passages, df, 1)
        made.append((forms, math.log(1 + (total - df + 0.5) / (df + 0.5))))
    return Terms(tuple(made))


def sentences(number: int, text: str) -> Iterator[Sentence]:
    """Sentences of a passage that can be quoted: without headings, table rulers and list marks."""
    cuts = [0, *(match.end() for match in _BLOCK.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        breaks = [start, *sentence_breaks(text, start, end), end]
        for begin, stop in pairwise(breaks):
            found = _quotable(number, text, begin, stop)
            if found is not None:
                yield found


def _quotable(number: int, text: str, begin: int, stop: int) -> Sentence | None:
    while begin < stop and text[begin].isspace():
        begin += 1
    if mark := _MARK.match(text, begin, stop):
        begin = mark.end()
    while stop > begin and text[stop - 1].isspace():
        stop -= 1
    said = text[begin:stop]
    if _HEADING.match(said) or _RULER.fullmatch(said):
        return None
    short = len("".join(said.split())) < MIN_QUOTE
    return None if short and said != text else Sentence(number, begin, stop, said)


def _head_of(
    sentence: Sentence, heads: Sequence[tuple[int, Mapping[int, float]]]
) -> frozenset[int]:
    """Lexemes of the header row above a table row."""
    if not sentence.text.startswith("|"):
        return frozenset()
    above = [terms for end, terms in heads if end <= sentence.start]
    return frozenset(above[-1]) if above else frozenset()


def extract(terms: Terms, hits: Sequence[Hit]) -> tuple[GroundedStatement, ...]:
    """The sentences that answer, best first; none is an abstention.

    Args:
        terms: what is asked.
        hits: passages, best first.
    """
    rated = []
    for number, hit in enumerate(hits, 1):
        above = analyze(hit.context, hit.language).terms
        heads = [
            (found.end(), analyze(found[1], hit.language).terms)
            for found in _TABLE_HEAD.finditer(hit.text)
        ]
        for sentence in sentences(number, hit.text):
            lexemes = analyze(sentence.text, hit.language).terms
            head = _head_of(sentence, heads)
            share = terms.share(lexemes, head | above.keys() if head else above)
            if share >= LEAST_COVERAGE and terms.share(lexemes, ()) > 0:
                rated.append((-share, number, sentence.start, sentence))
    rated.sort()
    chosen: list[Sentence] = []
    for negative, _, _, sentence in rated:
        if -negative < -rated[0][0] * NEAR_BEST or len(chosen) == MAX_SENTENCES:
            break
        if sentence.text not in {one.text for one in chosen}:
            chosen.append(sentence)
    return tuple(
        GroundedStatement(one.text, (Citation(one.passage, one.start, one.end, one.text),), ())
        for one in chosen
    )
