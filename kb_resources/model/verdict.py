"""Findings of the injection scan and the verdict they add up to; shapes only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How strong one finding is; only `high` can block."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Verdict(StrEnum):
    """The scan's answer for one version: publish, keep for review, or refuse and purge."""

    CLEAN = "clean"
    QUARANTINE = "quarantine"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule hit.

    Attributes:
        rule_id: stable id of the rule.
        severity: how strong it is.
        part: "body" (offsets are into the raw visible text) or the `HiddenText.kind` it was in.
        place: for a person ("page 3", "html comment", "line 12").
        byte_start: start in the part's text, UTF-8 bytes of the original, undecoded text.
        byte_end: end, exclusive.
        excerpt: at most 200 characters of the original text around the hit.
        decoded: what a decoder made of it, at most 200 characters, or None.
        explanation: the rule's sentence for a person.
    """

    rule_id: str
    severity: Severity
    part: str
    place: str
    byte_start: int
    byte_end: int
    excerpt: str
    decoded: str | None = None
    explanation: str = ""
