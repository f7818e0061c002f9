"""Rules against a text: tokens, the kinds they are of, and where rules hold.

Belongs here: reading a text block by block and naming what was found. Does not belong here: the
search among neighbours (`search`), decoding (`decoders`), severities in context (`context`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kb_resources.scan.fold import fold
from kb_resources.scan.lexicon import TOKEN, Lexicon
from kb_resources.scan.packs import Cluster, Packs, Rule
from kb_resources.scan.search import Hits, Search

# Read in blocks, so that memory stays bounded; the overlap is longer than any window.
BLOCK_CHARS = 32_000
_OVERLAP_CHARS = 900
# Of one rule, and stretches in disguise, in one text.
MAX_PER_RULE = 60
_MAX_SUSPECTS = 2_000
# A word to a model stands at the start of a line or sentence, before one of these.
_AFTER_VOCATIVE = ",:!"
_BEFORE_VOCATIVE = "\n.!?…\"'“”„«»`*#>[(:-–—"


@dataclass(frozen=True, slots=True)
class Match:
    """One place where a rule holds.

    Attributes:
        rule: which.
        start: first word's start, code points.
        end: last word's end.
        languages: whose words they are, those that know most of them.
    """

    rule: Rule | Cluster
    start: int
    end: int
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A stretch whose words read as known ones in a disguise.

    Attributes:
        channel: see `disguise`.
        start: code points.
        end: exclusive.
    """

    channel: str
    start: int
    end: int


class Matcher:
    """The rules of some packs, ready to be held against texts."""

    def __init__(self, packs: Packs) -> None:
        self.lexicon = Lexicon(packs)
        self._search = Search(packs, self.lexicon.bit_of)
        self._model_bit = self.lexicon.bit_of.get("AI", 0)
        self._vocative_bit = self.lexicon.bit_of["VOCATIVE"]
        self._idiom_bit = self.lexicon.bit_of.get("IDIOM", 0)

    def find(self, text: str) -> Iterator[Match | Suspect]:
        """Matches and suspects in a text, block by block, at most `MAX_PER_RULE` of each rule."""
        folded = fold(text)
        counts: Counter[str] = Counter()
        done: set[str] = set()
        start = 0
        while start < len(folded):
            end = min(len(folded), start + BLOCK_CHARS)
            seen_before = start + _OVERLAP_CHARS if start else 0
            yield from self._block(folded[start:end], start, seen_before, counts, done)
            if end == len(folded):
                return
            start = end - _OVERLAP_CHARS

    def _classify(self, tokens: Sequence[str]) -> tuple[Hits, dict[str, list[int]]]:
        """Hits in order, and where words are disguised by channel."""
        ats: list[int] = []
        bits: list[int] = []
        length: dict[int, int] = {}
        idioms: set[int] = set()
        disguised: dict[str, list[int]] = {}
        for at, word in enumerate(map(self.lexicon.__getitem__, tokens)):
            if not word:
                continue
            if isinstance(word, int):
                ats.append(at)
                bits.append(word)
                continue
            found, phrases, channels, glued = word
            for phrase in phrases.holding(tokens, at) if phrases else ():
                found |= phrase.bits
                if phrase.bits & self._idiom_bit:
                    idioms.update(range(at - phrase.key, at - phrase.key + len(phrase.words)))
                length[len(ats)] = max(length.get(len(ats), 1), len(phrase.words) - phrase.key)
            if found:
                ats.append(at)
                bits.append(found)
            for channel in channels:
                disguised.setdefault(channel, []).append(at)
            for piece in glued:
                ats.append(at)
                bits.append(piece)
        if idioms:
            # Words of an idiom mean nothing else; they keep their place.
            bits = [0 if at in idioms else kinds for at, kinds in zip(ats, bits, strict=True)]
        return Hits(ats, bits, length), disguised

    def _block(
        self, block: str, shift: int, seen_before: int, counts: Counter[str], done: set[str]
    ) -> Iterator[Match | Suspect]:
        tokens = TOKEN.findall(block)
        hits, disguised = self._classify(tokens)
        # Words run together call nobody out.
        at = hits.at
        models = [
            index
            for index, bits in enumerate(hits.bits)
            if bits & self._model_bit
            and at[index : index + 2].count(at[index]) == 1
            and (not index or at[index - 1] != at[index])
        ]
        spans = _Spans(block)
        called = {tokens[at[index] + hits.length.get(index, 1) - 1] for index in models}
        if any(f"{word}{mark}" in block for word in called for mark in _AFTER_VOCATIVE):
            for index in models:
                if _is_vocative(block, *spans.of(hits, index, index)):
                    hits.bits[index] |= self._vocative_bit
        for channel, positions in disguised.items():
            for first, last in self._search.dense(channel, positions):
                counts[channel] += 1
                if counts[channel] <= _MAX_SUSPECTS:
                    yield Suspect(channel, shift + spans[first][0], shift + spans[last][1])
        for rule, found in self._search.rules(hits, tokens, done):
            start, end = spans.of(hits, min(found), max(found))
            if shift + end > seen_before:
                counts[rule.id] += 1
                if counts[rule.id] == MAX_PER_RULE:
                    done.add(rule.id)
                languages = self.lexicon.languages([tokens[hits.at[index]] for index in found])
                yield Match(rule, shift + start, shift + end, languages)


class _Spans:
    """Where the tokens of a block stand, found as far as they are asked for."""

    def __init__(self, block: str) -> None:
        self._rest = TOKEN.finditer(block)
        self._spans: list[tuple[int, int]] = []

    def __getitem__(self, at: int) -> tuple[int, int]:
        missing = at + 1 - len(self._spans)
        if missing > 0:
            self._spans += [found.span() for found in islice(self._rest, missing)]
        return self._spans[min(at, len(self._spans) - 1)]

    def of(self, hits: Hits, first: int, last: int) -> tuple[int, int]:
        """The stretch from the first hit's start to the last hit's end."""
        return self[hits.at[first]][0], self[hits.at[last] + hits.length.get(last, 1) - 1][1]


def _is_vocative(block: str, start: int, end: int) -> bool:
    """Whether a word for a model is called out: first in its sentence, a comma or colon after."""
    if block[end : end + 1] not in _AFTER_VOCATIVE or not block[end + 1 : end + 2].isspace():
        return False
    before = block[max(0, start - 8) : start].rstrip(" \t")
    if not before or before[-1] in _BEFORE_VOCATIVE:
        return True
    return before.split()[-1:] in (["hey"], ["dear"], ["liebe"], ["lieber"], ["hi"], ["o"])
