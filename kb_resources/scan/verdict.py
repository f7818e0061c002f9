"""From findings to a verdict: a pure function.

Belongs here: how findings add up. Does not belong here: how strong one finding is.
One high finding blocks, one medium finding is for review. Low findings only count together: three
different rules close by. Spam findings never count, and nothing counts in a trusted source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kb_resources.model import Finding, Severity, Verdict

SPAM_PREFIX = "spam-"
# So many different low rules within so many bytes are for review.
LOW_RULES = 3
LOW_WITHIN_BYTES = 1_200
_LOOK_AHEAD = 50


def verdict(findings: Sequence[Finding]) -> Verdict:
    """What findings add up to.

    Args:
        findings: of all parts of one version, in any order.
    """
    counted = [f for f in findings if not f.rule_id.startswith(SPAM_PREFIX)]
    severities = {f.severity for f in counted}
    if Severity.HIGH in severities:
        return Verdict.BLOCK
    if Severity.MEDIUM in severities or _low_cluster(counted):
        return Verdict.QUARANTINE
    return Verdict.CLEAN


def as_trusted(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of a trusted source: kept for the record, without weight."""
    return tuple(replace(f, severity=Severity.INFO) for f in findings)


def _low_cluster(findings: Sequence[Finding]) -> bool:
    low = sorted(
        (f for f in findings if f.severity is Severity.LOW), key=lambda f: (f.part, f.byte_start)
    )
    for index, first in enumerate(low):
        near: set[str] = set()
        reached = -1
        for other in low[index : index + _LOOK_AHEAD]:
            if other.part != first.part or other.byte_start > first.byte_start + LOW_WITHIN_BYTES:
                break
            # Several rules on the same words are one hint, not several.
            if other.byte_start >= reached:
                near.add(other.rule_id.partition(".")[0])
                reached = other.byte_end
        if len(near) >= LOW_RULES:
            return True
    return False
