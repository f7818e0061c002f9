"""Words and identifiers in a text, each with the forms it may be looked for by.

Belongs here: where a word begins and ends, and which parts of an identifier are words of their
own. What does not: stems, stop words, hashes (`analyzer`).
Word boundaries follow the spirit of Unicode annex 29, simplified to what retrieval needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_CJK = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED = re.compile(f"[{_CJK}]")


def _words(letters: str) -> str:
    return rf"{letters}+(?:(?:[-./_:@&+'’‑–]|(?<=\d),(?=\d)){letters}+)*[+#]{{0,2}}"


# A run of letters and digits, single connectors inside; or a section sign; or unspaced script.
_RUN = re.compile(f"§+|[{_CJK}]+|" + _words(rf"[^\W_{_CJK}]"))
# The same for texts without unspaced script: most texts, at two thirds of the time.
_SPACED_RUN = re.compile(_words(r"[^\W_]") + "|§+")
_CONNECTOR = re.compile("[-./_:@&+'’‑–,]+")
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)
# Borders inside one run: aB, ABc; and a1, 1a.
_HUMP = re.compile(r"(?<=[^\W\d_A-ZА-Я])(?=[A-ZА-Я])|(?<=[A-ZА-Я])(?=[A-ZА-Я][^\W\d_A-ZА-Я])")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_HAS_DIGIT = re.compile(r"\d")
# Connectors between words of their own, and inside one word.
_APART = re.compile("['’/–]")
_JOINED = re.compile("['’‑-]")
AROUND_WORDS = ".,;:!?()[]{}<>\"'«»„“”‘’‚‹›…*"
"""Stripped off a piece of text between spaces, these leave its run, where that is letters alone."""
_MAX_CHARS = 80


class Token(NamedTuple):
    """One unit of a text.

    Attributes:
        words: lowercase words to be stemmed.
        exact: lowercase forms matched as they are (identifiers, numbers, acronyms).
    """

    words: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


def spaced(text: str) -> bool:
    """Whether no part of a text is in a script without spaces."""
    return text.isascii() or _UNSPACED.search(text) is None


def runs(text: str) -> list[str]:
    """Runs of a text that `fold.visible` has cleaned, case kept, in reading order."""
    found: list[str] = (_SPACED_RUN if spaced(text) else _RUN).findall(text)
    return found


def run_matches(text: str) -> Iterator[re.Match[str]]:
    """The same runs with their places."""
    return _RUN.finditer(text)


def token(run: str) -> Token:
    """Take one run apart: whole form and parts.

    `INV-2024/0815` gives the whole and its parts, `getUserName` the whole and three words,
    `e-mail` the two parts and `email`, `1.000` also `1000`.
    """
    if len(run) > _MAX_CHARS:
        return Token(exact=(run.lower(),))
    if run[0] == "§":
        return Token()
    if _unspaced(run):
        return Token(exact=tuple(run[i : i + 2] for i in range(max(1, len(run) - 1))))
    if not run.isalnum():
        run = _POSSESSIVE.sub("", run)
    if run.isalpha():
        return _word(run)
    if run.isdigit():
        return Token(exact=(run,))
    return _compound(run)


def demanded(run: str) -> tuple[Token, ...]:
    """What a text must have for it to hold this run: one form of each of these.

    `INV-2024/0815` is demanded whole; `customer-facing` as it stands, as `customerfacing`, or as
    two words; `getUserName` as one.
    """
    if len(run) > _MAX_CHARS:
        return (token(run),)
    if run[0] == "§":
        return ()
    if _unspaced(run):
        return tuple(Token(exact=(pair,)) for pair in token(run).exact)
    run = _POSSESSIVE.sub("", run)
    made = token(run)
    if run.isalnum() and not _HAS_DIGIT.search(run):
        return (Token(made.words[:1], made.exact),)
    if _GROUPED_NUMBER.fullmatch(run):
        return (made,)
    if _HAS_DIGIT.search(run) or run[-1] in "+#":
        return (Token(exact=made.exact[:1]),)
    joined = (_CONNECTOR.sub("", run.lower()),)
    whole = made.words[:1] if made.words[:1] == joined else ()
    parts = [part.lower() for part in _CONNECTOR.split(run) if part]
    return tuple(Token((*whole, part), made.exact) for part in parts)


def _unspaced(run: str) -> bool:
    return "\u0e00" <= run[0] <= "\ufaff" and run.isalpha() and not run.isupper()


def _word(word: str) -> Token:
    if word.isupper() and 1 < len(word) <= 6:  # an acronym is also itself, whatever the stemmer
        return Token(words=(word.lower(),), exact=(word.lower(),))
    if word[1:].islower() or word.isupper() or word.islower():
        return Token(words=(word.lower(),))
    parts = [part.lower() for part in _HUMP.split(word) if len(part) > 1]
    whole = word.lower()
    return Token(words=(whole, *parts) if len(parts) > 1 else (whole,))


def _compound(run: str) -> Token:
    if run.isalnum():
        return Token(*_mixed(run))
    words: list[str] = []
    exact: list[str] = []
    whole = run.lower()
    if run[0].isdecimal() and _GROUPED_NUMBER.fullmatch(run):
        return Token(exact=(whole, _CONNECTOR.sub("", whole)))
    if whole[-1] in "+#":
        exact.append(whole)
    parts = [part for part in _CONNECTOR.split(run.rstrip("+#")) if part]
    has_digit = _HAS_DIGIT.search(run) is not None
    if len(parts) > 1:
        if has_digit or not _APART.search(run):
            exact.append(whole.replace("‑", "-"))
        if not has_digit and _JOINED.search(run):
            words.append(_CONNECTOR.sub("", whole))
    for part in parts:
        if part.isalpha():
            words.extend(_word(part).words)
        elif part.isdigit():
            exact.append(part)
        else:
            spelled, written = _mixed(part)
            words.extend(spelled)
            exact.extend(written)
    return Token(tuple(dict.fromkeys(words)), tuple(dict.fromkeys(exact)))


def _mixed(part: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words in a part of letters and digits; and the part itself with the numbers in it."""
    words: dict[str, None] = {}
    exact: dict[str, None] = {part.lower(): None}
    for piece in _LETTERS_OR_DIGITS.findall(part):
        if len(piece) > 1:
            if piece.isdigit():
                exact[piece] = None
            elif piece.isalpha():
                words[piece.lower()] = None
    return tuple(words), tuple(exact)
