"""The hits of a part, and what their neighbours say about them.

Belongs here: a hit before it becomes a finding, and severities that depend on other hits. Does not
belong here: what the words around a match say (`context`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kb_resources.model import Severity

# In longer texts a hit needs company: another rule within so many code points.
LONG_CHARS = 5_000
COMPANY_CHARS = 500
_NEIGHBOURS = 60


@dataclass(frozen=True, slots=True)
class RawHit:
    """A hit in a part before it becomes a finding; offsets in code points of the part.

    Attributes:
        firm: whether it says enough by itself, however long the text is.
        named: whether a sentence only names it, in quotation marks.
    """

    rule_id: str
    severity: Severity
    start: int
    end: int
    explanation: str
    decoded: str | None = None
    firm: bool = True
    named: bool = False


def keep_company(hits: Iterable[RawHit], length: int) -> list[RawHit]:
    """The hits, those that stand alone in a long text weakened.

    A rule that is no firm one holds by chance now and then, the more often the longer a text is. An
    instruction is a few sentences at one place and meets several rules there.

    Args:
        hits: of one part.
        length: of the part, code points.
    """
    placed = sorted(hits, key=lambda raw: raw.start)
    if length <= LONG_CHARS:
        return placed
    counted = [raw for raw in placed if raw.severity is not Severity.INFO]
    starts = [raw.start for raw in counted]
    return [
        replace(raw, severity=Severity.LOW)
        if raw.severity is Severity.MEDIUM and not raw.firm and _alone(raw, counted, starts)
        else raw
        for raw in placed
    ]


def _alone(raw: RawHit, counted: list[RawHit], starts: list[int]) -> bool:
    """Whether no other rule holds close by; the nearest neighbours are enough to tell."""
    rule = raw.rule_id.partition(".")[0]
    return not any(other.rule_id.partition(".")[0] != rule for other in _near(raw, counted, starts))


def _near(raw: RawHit, counted: list[RawHit], starts: list[int]) -> list[RawHit]:
    at = bisect_left(starts, raw.start)
    return [
        other
        for other in counted[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
        if other.start < raw.end + COMPANY_CHARS and other.end > raw.start - COMPANY_CHARS
    ]


def pass_named(hits: Iterable[RawHit]) -> list[RawHit]:
    """The hits in order of place, those low that a sentence names and that stand alone.

    The opening words of an attack in quotation marks ask for nothing; with anything else that a
    rule knows close by, they may be used and not named.

    Args:
        hits: of one part.
    """
    placed = sorted(hits, key=lambda raw: raw.start)
    if not any(raw.named for raw in placed):
        return placed
    counted = [raw for raw in placed if raw.severity is not Severity.INFO]
    starts = [raw.start for raw in counted]
    return [
        replace(raw, severity=Severity.LOW)
        if raw.named
        and raw.severity is Severity.MEDIUM
        and all(
            raw.start <= other.start and other.end <= raw.end
            for other in _near(raw, counted, starts)
        )
        else raw
        for raw in placed
    ]
