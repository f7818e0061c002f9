"""How the surroundings of a match change its severity.

Belongs here: telling an instruction from a text that talks about one, and what hiding adds.
Does not belong here: finding matches. A security guide that quotes an attack is at most for review;
the price is that an attacker who writes like one is reviewed instead of blocked.
Source: Austin's use and mention, as applied to quotations.
"""

from __future__ import annotations

import re

from kb_resources.model import Severity
from kb_resources.scan.fold import fold

BEFORE_CHARS = 320
AFTER_CHARS = 200
# How many words about attacks around a match make the text one about attacks.
_ABOUT_ATTACKS = 2
# Longer quotations are no examples; blocks end at an empty line.
_QUOTED_CHARS = 320
_BLOCK_END = re.compile(r"\n[ \t]*\n")
# Opening marks with those that close them; an apostrophe within a word is neither.
_CLOSING = {
    '"': '"', "'": "'", "`": "`", "“": "”“\"", "„": "“”\"", "«": "»", "»": "«", "‚": "‘’", "‘": "’",
}  # fmt: skip
_DOWN = {
    Severity.HIGH: Severity.MEDIUM,
    Severity.MEDIUM: Severity.LOW,
    Severity.LOW: Severity.INFO,
    Severity.INFO: Severity.INFO,
}
_UP = {Severity.LOW: Severity.MEDIUM}
ABOUT, QUOTED, NAMED = 1, 2, 3
_PUNCTUATION = " .,;:!?…"
_WORD_BEFORE = 4


def mention_level(text: str, start: int, end: int, mention: re.Pattern[str]) -> int:
    """How much a text talks about a match instead of using it.

    0 not, `ABOUT` in the words around it, `QUOTED` in quotation marks, `NAMED` alone between such
    marks within a sentence.

    Args:
        text: the part that the match is in.
        start: of the match, code points.
        end: exclusive.
        mention: words about attacks and examples, folded.
    """
    before = text[max(0, start - BEFORE_CHARS) : start]
    after = text[end : end + AFTER_CHARS]
    words = {m.group() for m in mention.finditer(f"{fold(before)} \n {fold(after)}")}
    if not words:
        return 0
    if (around := _quotation(text, start, end)) is not None:
        alone = not (text[around[0] + 1 : start] + text[end : around[1]]).strip(_PUNCTUATION)
        in_sentence = text[: around[0]][-_WORD_BEFORE:].rstrip(" ")[-1:].isalnum()
        return NAMED if alone and in_sentence else QUOTED
    return ABOUT if len(words) >= _ABOUT_ATTACKS else 0


def _quotation(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where the marks stand that enclose a match in its block and close by, or None."""
    before = _BLOCK_END.split(text[max(0, start - _QUOTED_CHARS) : start])[-1]
    after = _BLOCK_END.split(text[end : end + _QUOTED_CHARS])[0]
    if _BLOCK_END.search(text, start, end):
        return None
    for opening, closing in _CLOSING.items():
        marks = [at for at, sign in enumerate(before) if sign == opening and _opens(before, at)]
        if not marks or any(sign in before[marks[-1] + 1 :] for sign in closing):
            continue
        first = start - len(before) + marks[-1]
        closed = [end + at for sign in closing if (at := after.find(sign)) >= 0]
        if closed and min(closed) - first <= _QUOTED_CHARS:
            return first, min(closed)
    return None


def _opens(before: str, at: int) -> bool:
    """Whether a mark may open a quotation: no letter in front of it, no space behind it."""
    return not before[at - 1 : at].isalnum() and not before[at + 1 : at + 2].isspace()


def in_context(severity: Severity, *, mention: int, encoded: bool, hidden: bool) -> Severity:
    """Severity of a match where it stands.

    Talk about attacks never takes an unambiguous one out of review, and explains nothing that was
    hidden or encoded: an author who shows an example shows it.

    Args:
        severity: of the rule.
        mention: see `mention_level`.
        encoded: whether it was only readable after decoding.
        hidden: whether a reader does not see it.
    """
    if encoded and severity is not Severity.LOW:
        severity = Severity.HIGH
    if hidden or encoded:
        return _UP.get(severity, severity)
    steps = 1 if severity is Severity.HIGH else QUOTED
    for _ in range(min(mention, steps)):
        severity = _DOWN[severity]
    return severity
