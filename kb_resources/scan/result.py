"""What a scan gives back; shapes only."""

from __future__ import annotations

from dataclasses import dataclass

from kb_resources.model import Finding, Verdict


@dataclass(frozen=True, slots=True)
class ScanResult:
    """Findings of one version and what they add up to.

    Attributes:
        verdict: clean, quarantine or block.
        findings: in order of part and place; at most `scanner.MAX_FINDINGS`.
        pack_version: of the rule packs and the scanner, part of the stage's fingerprint.
        truncated: whether there were more findings, or more encoded text, than was kept or read.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    pack_version: str
    truncated: bool
