"""From a word to the kinds it is of, in all languages at once.

Belongs here: looking up exact words, stems and phrases, and other readings of a word in disguise.
Does not belong here: what kinds mean together (`matcher`).
Texts repeat their words, so each distinct word is looked up once and remembered.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kb_resources.scan.disguise import DOUBLED, REVERSED, ciphers, readings, undoubled
from kb_resources.scan.fold import fold
from kb_resources.scan.packs import SHAPES, Packs

# Words, addresses as one token each, and what ends a sentence. What is longer than any word falls
# into several, so that words run together keep their distances.
TOKEN = re.compile(
    r"https?://\S{1,2000}|\w{1,256}|(?<=\w)@(?=\w)|://|!\[|<\|(?=\w)|\[/?inst\]|<</?sys>>"
    r"|[.!?…]+(?=[\s\"'”“»’)\]]|$)|\n(?=[ \t]{0,16}(?:\n|[-*+•·o#|] |\d{1,3}[.)] ))"
)
_TOOL_NAME = re.compile(
    r"(?:send|delete|remove|http|fetch|exec|execute|run|transfer|write|read|get|post|forward|upload"
    r"|download|create|update|search|share|invite|schedule|list|make|call|open|add|reserve)_[a-z_]+"
)
_MAX_REMEMBERED = 200_000
# Words run together are at least so long; longer where the whole already starts like a known one.
_MIN_GLUED, _MIN_GLUED_KNOWN = 12, 24
_LEAST_GLUED = 3
_MAX_WORD = 64
HEAD = 3
# Shorter words read as something in any cipher.
_MIN_CIPHERED = 3


@dataclass(frozen=True, slots=True)
class Phrase:
    """Several words in a row that are of some kinds together.

    Attributes:
        words: each with whether it is a stem.
        key: index of the word that the phrase is found by, the longest one.
        bits: kinds.
    """

    words: tuple[tuple[str, bool], ...]
    key: int
    bits: int

    def holds(self, tokens: Sequence[str], at: int) -> bool:
        """Whether the phrase stands around its key word at `at`."""
        first = at - self.key
        if first < 0 or first + len(self.words) > len(tokens):
            return False
        for offset, (word, is_stem) in enumerate(self.words):
            token = tokens[first + offset]
            if not (token.startswith(word) if is_stem else token == word):
                return False
        return True


class Phrases:
    """The phrases that are found by one word, sorted by the word that stands next to it."""

    def __init__(self, phrases: Iterable[Phrase]) -> None:
        self._before: dict[str, list[Phrase]] = defaultdict(list)
        self._after: dict[str, list[Phrase]] = defaultdict(list)
        self._any: list[Phrase] = []
        for phrase in phrases:
            at = phrase.key - 1 if phrase.key else 1
            word, is_stem = phrase.words[at]
            if is_stem:
                self._any.append(phrase)
            else:
                (self._before if phrase.key else self._after)[word].append(phrase)

    def holding(self, tokens: Sequence[str], at: int) -> list[Phrase]:
        """Those that stand around the word at `at`; most words next to it belong to none."""
        found = self._any
        if at and (before := self._before.get(tokens[at - 1])):
            found = found + before
        if at + 1 < len(tokens) and (after := self._after.get(tokens[at + 1])):
            found = found + after
        return [phrase for phrase in found if phrase.holds(tokens, at)] if found else found


class Word(NamedTuple):
    """What a word may be that is more than of some kinds.

    Attributes:
        bits: kinds, one bit each.
        phrases: that are found by this word.
        disguised: channels in which it reads as a word of some kind.
        glued: kinds of the words that it falls into where spaces were left out.
    """

    bits: int
    phrases: Phrases | None
    disguised: tuple[str, ...]
    glued: tuple[int, ...]


@dataclass(slots=True)
class _Entry:
    """What a list says about a word or the beginning of one; see `Word`."""

    bits: int = 0
    phrases: list[Phrase] = field(default_factory=list)
    channels: set[str] = field(default_factory=set)


BARRIER = 1


class Lexicon(dict[str, int | Word]):
    """Words seen so far; a missing one is looked up.

    A word that only is of some kinds is their bits, one of no kind 0: most words of a text are one
    of the two, and going through them is most of what a scan does. `BARRIER` ends a sentence.
    """

    def __init__(self, packs: Packs) -> None:
        super().__init__()
        kinds = sorted({k for words in packs.words.values() for k in words} | SHAPES)
        self.bit_of = {kind: 1 << i for i, kind in enumerate(kinds, start=1)}
        self._exact: dict[str, int] = defaultdict(int)
        self._stems: dict[str, int] = defaultdict(int)
        self._phrases: dict[tuple[str, bool], list[Phrase]] = defaultdict(list)
        self._languages: dict[str, set[str]] = defaultdict(set)
        for language, words in packs.words.items():
            for kind, entries in words.items():
                for entry in entries:
                    self._add(language, entry, self.bit_of[kind])
        self._exact["@"] |= self.bit_of["EMAIL"]
        self._address = self.bit_of["URL"]
        self._exact["!["] |= self.bit_of["IMAGE"]
        for mark in ("<|", "[inst]", "[/inst]", "<<sys>>", "<</sys>>"):
            self._exact[mark] |= self.bit_of["TURN"]
        self._pieces = _by_head([*self._exact, *self._stems])
        self._heads = frozenset(self._pieces)
        self._whole = self._whole_words()
        self._beginnings = self._stem_entries()
        self._beginning_heads = _by_head(self._beginnings)
        # Reversed words are told by their ending.
        self._endings = frozenset(stem[::-1] for stem in self._stems)
        self._ending_heads = _by_head(self._stems)

    def _whole_words(self) -> dict[str, _Entry]:
        """Exact words as they stand, and in simple ciphers."""
        made: dict[str, _Entry] = defaultdict(_Entry)
        for entry, bits in self._exact.items():
            made[entry].bits |= bits
            if len(entry) >= _MIN_CIPHERED:
                for channel, written in (*ciphers(entry), (REVERSED, entry[::-1])):
                    made[written].channels.add(channel)
        for (word, is_stem), phrases in self._phrases.items():
            if not is_stem:
                made[word].phrases += phrases
        return dict(made)

    def _stem_entries(self) -> dict[str, _Entry]:
        """Stems as they stand, and in ciphers that keep a word's beginning."""
        made: dict[str, _Entry] = defaultdict(_Entry)
        for stem, bits in self._stems.items():
            made[stem].bits |= bits
            for channel, written in ciphers(stem):
                made[written].channels.add(channel)
        for (word, is_stem), phrases in self._phrases.items():
            if is_stem:
                made[word].phrases += phrases
        return dict(made)

    def __missing__(self, token: str) -> int | Word:
        if "://" in token:
            return self._address
        if not token[0].isalnum() and token not in self._exact:
            return BARRIER if token[0] in ".!?…\n" else 0
        word = self._look_up(token)
        if len(self) < _MAX_REMEMBERED:
            self[token] = word
        return word

    def languages(self, tokens: Sequence[str]) -> tuple[str, ...]:
        """Languages whose lists know most of the given words."""
        counts: dict[str, int] = defaultdict(int)
        for token in tokens:
            known = {
                language
                for end in range(2, min(len(token), _MAX_WORD) + 1)
                for language in self._languages.get(token[:end], ())
            }
            for language in known:
                counts[language] += 1
        most = max(counts.values(), default=0)
        return tuple(sorted(language for language in counts if counts[language] == most))

    def _add(self, language: str, entry: str, bit: int) -> None:
        if entry.endswith("!"):
            for form in _imperatives(entry[:-1]):
                self._add(language, form, bit)
            return
        words = tuple((word.rstrip("*"), word.endswith("*")) for word in fold(entry).split())
        key = max(range(len(words)), key=lambda index: len(words[index][0]))
        stem, is_stem = words[key]
        self._languages[stem].add(language)
        if len(words) > 1:
            self._phrases[words[key]].append(Phrase(words, key, bit))
        elif is_stem:
            self._stems[stem] |= bit
        else:
            self._exact[stem] |= bit

    def _look_up(self, token: str) -> int | Word:
        whole, token = token, token[:_MAX_WORD]
        entries = self._entries(token)
        if not entries and len(token) < _MIN_CIPHERED:
            return 0
        bits = 0
        phrases: list[Phrase] = []
        for entry in entries:
            bits |= entry.bits
            phrases += entry.phrases
        if "_" in token and _TOOL_NAME.fullmatch(token):
            bits |= self.bit_of["TOOLNAME"]
        disguised: set[str] = set()
        if not token.isalpha() or not token.isascii():
            disguised.update(
                channel for channel, reading in readings(token) if self._bits(reading) & ~bits
            )
        if not bits and (single := undoubled(token)) and self._bits(single):
            disguised.add(DOUBLED)
        if not bits and len(token) >= _MIN_CIPHERED:
            for entry in entries:
                disguised |= entry.channels
            for length in self._ending_heads.get(token[: -HEAD - 1 : -1], ()):
                if token[-length:] in self._endings:
                    disguised.add(REVERSED)
        glued: tuple[int, ...] = ()
        if len(token) >= (_MIN_GLUED_KNOWN if bits else _MIN_GLUED):
            glued = self._glued(whole)
        if not phrases and not disguised and not glued:
            return bits
        return Word(bits, Phrases(phrases) if phrases else None, tuple(sorted(disguised)), glued)

    def _entries(self, token: str) -> list[_Entry]:
        """What the token is as a whole and by its beginnings."""
        whole = self._whole.get(token)
        found = [] if whole is None else [whole]
        lengths = self._beginning_heads.get(token[:HEAD])
        if lengths:
            found += [
                self._beginnings[token[:length]]
                for length in lengths
                if token[:length] in self._beginnings
            ]
        return found

    def _bits(self, token: str) -> int:
        bits = 0
        for entry in self._entries(token):
            bits |= entry.bits
        return bits

    def _glued(self, token: str) -> tuple[int, ...]:
        """Kinds of the words that a token without spaces falls into; none unless three."""
        starts = [at for at in range(len(token) - 2) if token[at : at + HEAD] in self._heads]
        if len(starts) < _LEAST_GLUED:
            return ()
        found, done = [], 0
        for at in starts:
            if at < done:
                continue
            for length in reversed(self._pieces[token[at : at + HEAD]]):
                piece = token[at : at + length]
                bits = self._exact.get(piece, 0) | self._stems.get(piece, 0)
                if bits and length > 2:
                    found.append(bits)
                    done = at + length
                    break
        return tuple(found) if len(found) >= _LEAST_GLUED else ()


def _by_head(entries: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Lengths of entries by their first letters, ascending: most words need one look."""
    lengths: dict[str, set[int]] = defaultdict(set)
    for entry in entries:
        lengths[entry[:HEAD]].add(len(entry))
    return {head: tuple(sorted(found)) for head, found in lengths.items()}


def _imperatives(singular: str) -> tuple[str, ...]:
    """The imperative of one and of many in the Slavic languages, after folding."""
    folded = fold(singular)
    plural = folded + ("те" if ord(folded[-1]) > 0x400 else "te")
    bulgarian = (folded[:-1] + "ете",) if folded.endswith("и") else ()
    return (folded, plural, *bulgarian)
