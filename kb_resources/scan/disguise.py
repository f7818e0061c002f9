"""Words in disguise: look-alike letters, digits for letters, rot13, reversal, glued words.

Belongs here: what else a word or stretch may read as. Does not belong here: encoded stretches that
can be told by their form, which `decoders` find. Here the words themselves give it away: a stretch
is read in another way only where known words show up in it.
Source: Unicode Technical Standard 39, confusables (own selection).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kb_resources.scan.fold import fold
from kb_resources.scan.offsets import Edit

LOOK_ALIKE, LEET, ROT13, ATBASH, REVERSED, DOUBLED = (
    "look-alike letters", "digits for letters", "rot13", "atbash", "reversed", "doubled letters",
)  # fmt: skip
# How many known words make a stretch worth reading in that way.
LEAST_WORDS = {LOOK_ALIKE: 1, LEET: 2, ROT13: 3, ATBASH: 3, REVERSED: 3, DOUBLED: 2}

# Cyrillic and Greek letters that look like Latin ones, after folding to lower case.
_LOOK_ALIKES = dict(
    zip("авсԁеԍһіјӏкмнорԛѕтуѵԝхьпгз", "abcdeghijlkmhopqstyvwxbnr3", strict=True)
) | dict(zip("αβεζηικμνορτυχγωϲϳ", "abeznikuvoptuxywcj", strict=True))
_TO_LATIN = str.maketrans(_LOOK_ALIKES)
_TO_CYRILLIC = str.maketrans(dict(zip("abcehijkmopstyxn", "авсеніјкморѕтухп", strict=True)))
_LEET = str.maketrans("0134578926", "oieastbgzg")
_LEET_L = str.maketrans("0134578926", "oleastbgzg")
_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_ATBASH = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")
# Macedonian "all" and "us", whose accented letter most keyboards have in Latin only, folded.
_SPELLED_SO = frozenset({"сe", "нe"})
_MIN_DOUBLED = 3
_LATIN = re.compile(r"[a-z]")
_OTHER = re.compile(r"[\u0370-\u03ff\u0400-\u052f]")
_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"\w+")


def readings(word: str) -> Iterator[tuple[str, str]]:
    """Other readings of a folded word that mixes scripts or digits, each with its channel."""
    if word.isascii():
        if not word.isalpha() and _DIGIT.search(word) and _LATIN.search(word):
            yield LEET, word.translate(_LEET)
            if "1" in word:
                yield LEET, word.translate(_LEET_L)
    elif _LATIN.search(word) and _OTHER.search(word) and word not in _SPELLED_SO:
        skeleton = word.translate(_TO_LATIN)
        if skeleton.isascii():
            yield LOOK_ALIKE, skeleton
        yield LOOK_ALIKE, word.translate(_TO_CYRILLIC)


def undoubled(word: str) -> str | None:
    """A word of which every letter stands twice, with each once; None for any other."""
    half = word[::2]
    return half if len(half) >= _MIN_DOUBLED and half == word[1::2] else None


def ciphers(word: str) -> Iterator[tuple[str, str]]:
    """What a known word or stem becomes in simple ciphers that keep its beginning first."""
    if word.isascii() and word.isalpha():
        yield ROT13, word.translate(_ROT13)
        yield ATBASH, word.translate(_ATBASH)


def unmask(channel: str, text: str, start: int, end: int) -> Iterator[list[Edit]]:
    """Ways to read a stretch of a text, each as edits.

    Args:
        channel: of the disguise.
        text: the whole text.
        start: of the stretch, code points.
        end: exclusive.
    """
    if channel == LOOK_ALIKE:
        yield list(_words(text, start, end, lambda w: w.translate(_TO_LATIN), _is_mixed))
        yield list(_words(text, start, end, lambda w: w.translate(_TO_CYRILLIC), _is_mixed))
    elif channel == LEET:
        yield list(_words(text, start, end, lambda w: w.translate(_LEET), _has_digit))
        yield list(_words(text, start, end, lambda w: w.translate(_LEET_L), _has_digit))
    elif channel == ROT13:
        yield [Edit(start, end, fold(text[start:end]).translate(_ROT13))]
    elif channel == ATBASH:
        yield [Edit(start, end, fold(text[start:end]).translate(_ATBASH))]
    elif channel == DOUBLED:
        yield list(_words(text, start, end, lambda w: w[::2], lambda w: undoubled(w) is not None))
    elif channel == REVERSED:
        yield [Edit(start, end, text[start:end][::-1])]


def _words(
    text: str, start: int, end: int, read: Callable[[str], str], wanted: Callable[[str], bool]
) -> Iterator[Edit]:
    folded = fold(text[start:end])
    for found in _WORD.finditer(folded):
        word = found.group()
        if wanted(word) and (other := read(word)) != word:
            yield Edit(start + found.start(), start + found.end(), other)


def _is_mixed(word: str) -> bool:
    return not word.isascii() and _OTHER.search(word) is not None


def _has_digit(word: str) -> bool:
    return _DIGIT.search(word) is not None
