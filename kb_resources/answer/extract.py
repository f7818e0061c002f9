"""An answer without a model: the sentences of the passages that speak of what was asked.

Belongs here: choosing sentences and abstaining. What does not: searching. A sentence answers when
it holds enough of the question's words, rare ones counting more (IDF, Spärck Jones 1972); words
in the title and headings above it count in part. Nothing is phrased anew, so nothing can be wrong
but the choice. A row of a table is quoted with the header row above it, which says what its cells
are, and is no answer itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kb_resources.answer.ground import MIN_QUOTE, Citation, GroundedStatement
from kb_resources.answer.interrogatives import without_topic
from kb_resources.chunk.sentences import sentence_breaks
from kb_resources.lexical import analyze, analyze_query
from kb_resources.lexical.tokens import runs
from kb_resources.retrieve.hit import Hit

MAX_SENTENCES = 3
CONTEXT_SHARE = 0.5
"""What a word in the title or headings counts beside one in the sentence."""
LEAST_COVERAGE = 0.45
"""Share of the question's weight below which no sentence answers it; see bench/answers.py."""
RELEVANT_COVERAGE = (0.6, 0.4)
"""The same in passages of relevance 0 and 1 (`retrieve.relevance`), linear in between."""
NEAR_BEST = 0.85
"""Further sentences are as good as this share of the best."""

_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+")
_BLOCK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•>|#]|\d{1,3}[.)][ \t]))")
_HEADING = re.compile(r"#{1,6}[ \t]")
_RULER = re.compile(r"[|\s:-]*")
_GAP = re.compile(r"\n[ \t]*\n")
_TABLE_HEAD = re.compile(r"^(\|.*\S)[ \t]*\n[ \t]*\|[ \t|:-]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage.

    Attributes:
        passage: 1-based number of the passage.
        start: in the passage's text, code points.
        end: exclusive.
        text: the passage's own words in that span.
        head: span of the header row, for a row of a table.
    """

    passage: int
    start: int
    end: int
    text: str
    head: tuple[int, int] | None = None


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
    """The lexemes of each word that says what a question is about, each word once."""
    asked = analyze_query(question).keys()
    words: dict[frozenset[int], None] = {}
    found = runs(question)
    left_out = without_topic([run.lower() for run in found])
    for run in found:
        if run.lower() in left_out:
            continue
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
    """What of a passage can be quoted: sentences and rows of tables, each row whole.

    Left out are headings, header rows and rulers of tables, and the marks of lists.
    """
    heads = [at.span(1) for at in _TABLE_HEAD.finditer(text) if not _RULER.fullmatch(at[1])]
    cuts = [0, *(match.end() for match in _BLOCK.finditer(text)), len(text)]
    for start, end in pairwise(cuts):
        is_row = text[start:end].lstrip().startswith("|")
        breaks = [start, *(() if is_row else sentence_breaks(text, start, end)), end]
        for begin, stop in pairwise(breaks):
            found = _quotable(number, text, begin, stop)
            if found is None:
                continue
            head = _head_of(text, heads, found.start) if is_row else None
            if head and head[0] == found.start:
                continue
            if head or not _says_little(found.text) or found.text == text:
                yield replace(found, head=head)


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
    return Sentence(number, begin, stop, said)


def _says_little(said: str) -> bool:
    return len("".join(said.split())) < MIN_QUOTE


def _head_of(text: str, heads: Sequence[tuple[int, int]], row: int) -> tuple[int, int] | None:
    """Span of the header row of the table that a row stands in, or is; None where there is none."""
    above = next((head for head in reversed(heads) if head[0] <= row), None)
    return None if above is None or _GAP.search(text, above[1], row) else above


def rate(terms: Terms, number: int, hit: Hit) -> Iterator[tuple[float, Sentence]]:
    """What of a passage holds a word of the question itself, with its share of the question.

    Args:
        terms: what is asked.
        number: 1-based number of the passage.
        hit: the passage.
    """
    above = analyze(hit.context, hit.language).terms.keys()
    for sentence in sentences(number, hit.text):
        lexemes = analyze(sentence.text, hit.language).terms
        if terms.share(lexemes, ()) > 0:
            head = hit.text[slice(*sentence.head)] if sentence.head else ""
            yield terms.share(lexemes, above | analyze(head, hit.language).terms.keys()), sentence


def least_coverage(relevance: float | None) -> float:
    """Share of the question that a sentence must hold, by the relevance of its passage."""
    if relevance is None:
        return LEAST_COVERAGE
    doubted, sure = RELEVANT_COVERAGE
    return doubted + (sure - doubted) * relevance


def extract(terms: Terms, hits: Sequence[Hit]) -> tuple[GroundedStatement, ...]:
    """The sentences that answer, best first; none is an abstention.

    Args:
        terms: what is asked.
        hits: passages, best first.
    """
    rated = sorted(
        (-share, number, sentence.start, sentence)
        for number, hit in enumerate(hits, 1)
        for share, sentence in rate(terms, number, hit)
        if share >= least_coverage(hit.relevance)
    )
    chosen: list[Sentence] = []
    for negative, _, _, sentence in rated:
        if -negative < -rated[0][0] * NEAR_BEST or len(chosen) == MAX_SENTENCES:
            break
        if sentence.text not in {one.text for one in chosen}:
            chosen.append(sentence)
    return tuple(_statement(one, hits[one.passage - 1].text) for one in chosen)


def _statement(said: Sentence, text: str) -> GroundedStatement:
    """A sentence with its citation; a row after its header row, both cited.

    Where one of the two is too short to be a quote (O-42), the table down to the row is quoted.
    """
    spans = [(said.start, said.end)]
    if said.head:
        spans.insert(0, said.head)
        if any(_says_little(text[a:b]) for a, b in spans):
            spans = [(said.head[0], said.end)]
    cited = tuple(Citation(said.passage, a, b, text[a:b]) for a, b in spans)
    return GroundedStatement("\n".join(one.quote for one in cited), cited, ())
