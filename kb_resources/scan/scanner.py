"""The scanner: text in, findings and verdict out.

Belongs here: the parts of a version, and findings with their offsets in bytes. Does not belong
here: reading a part (`reader`), rows, files, Dagster. No model takes part, so nothing can talk it
round. Source: OWASP Top 10 for LLM Applications 2025, LLM01 and LLM05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kb_resources.model import Finding, HiddenText, Severity
from kb_resources.scan.company import RawHit
from kb_resources.scan.fold import fold
from kb_resources.scan.matcher import Matcher
from kb_resources.scan.packs import Packs
from kb_resources.scan.places import Places
from kb_resources.scan.reader import EXCERPT_CHARS, MAX_FINDINGS, PartReader
from kb_resources.scan.result import ScanResult
from kb_resources.scan.shown import SEPARATORS, ShownText
from kb_resources.scan.verdict import as_trusted, verdict
from kb_resources.scan.version import SCANNER_VERSION


class Scanner:
    """Scans texts with some rule packs; safe to share between calls of one thread."""

    def __init__(self, packs: Packs) -> None:
        self._matcher = Matcher(packs)
        self._version = f"{packs.version}/{SCANNER_VERSION}"
        mention = sorted(
            {fold(e) for words in packs.words.values() for e in words.get("MENTION", ())}
        )
        self._mention = re.compile(
            r"\b(?:" + "|".join(re.escape(m.rstrip("*")) for m in mention) + r")"
        )

    @property
    def version(self) -> str:
        """Version of packs and scanner, part of the scan stage's fingerprint."""
        return self._version

    def scan(
        self,
        raw_text: str,
        hidden: Sequence[HiddenText] = (),
        *,
        shown: Sequence[ShownText] = (),
        language: str | None = None,
        trusted: bool = False,
    ) -> ScanResult:
        """Scan a version's text.

        Args:
            raw_text: visible text with invisible characters kept.
            hidden: what a reader does not see.
            shown: what is shown along with the text: title, names, breadcrumbs, facts.
            language: of the visible text, to name a rule's language where several fit.
            trusted: the source is trusted: findings are recorded as info and nothing blocks.

        Returns:
            The verdict with its findings. Never raises for any text.
        """
        findings: list[Finding] = []
        truncated = False
        for part in _parts(raw_text, hidden, shown):
            reader = PartReader(self._matcher, self._mention, language, hidden=part.hidden)
            raws = reader.read(part.text)
            if part.is_name and (spaced := part.text.translate(SEPARATORS)) != part.text:
                raws = list(dict.fromkeys([*raws, *reader.read(spaced)]))
            places = Places(part.text)
            findings += [_finding(raw, part, places) for raw in raws]
            truncated |= reader.truncated or len(findings) > MAX_FINDINGS
            findings = _strongest(findings)
        kept = as_trusted(findings) if trusted else tuple(findings)
        return ScanResult(verdict(kept), kept, self._version, truncated)


class _Part(NamedTuple):
    kind: str
    place: str
    text: str
    hidden: bool = False
    is_name: bool = False


def _parts(
    raw_text: str, hidden: Sequence[HiddenText], shown: Sequence[ShownText]
) -> Iterator[_Part]:
    yield _Part("body", "", raw_text)
    for label in shown:
        yield _Part(label.kind, label.place, label.text, is_name=label.is_name)
    for one in hidden:
        yield _Part(one.kind, one.place, one.text, hidden=True)


def _strongest(findings: list[Finding]) -> list[Finding]:
    """At most `MAX_FINDINGS`, in their order: a flood of weak ones must not hide a strong one."""
    if len(findings) <= MAX_FINDINGS:
        return findings
    ranks = list(Severity)
    ranked = sorted(findings, key=lambda f: -ranks.index(f.severity))
    kept = set(map(id, ranked[:MAX_FINDINGS]))
    return [finding for finding in findings if id(finding) in kept]


def _finding(raw: RawHit, part: _Part, places: Places) -> Finding:
    text = part.text
    room = max(0, EXCERPT_CHARS - (raw.end - raw.start)) // 2
    start = max(0, raw.start - min(room, 40))
    byte_start, byte_end = places.bytes_at(raw.start), places.bytes_at(raw.end)
    return Finding(
        rule_id=raw.rule_id,
        severity=raw.severity,
        part=part.kind,
        place=part.place or f"line {places.line_at(raw.start)}",
        byte_start=byte_start,
        byte_end=byte_end,
        excerpt=text[start : start + EXCERPT_CHARS],
        decoded=raw.decoded,
        explanation=raw.explanation,
    )
