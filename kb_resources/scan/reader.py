"""Reading one part of a version: its words, its form, and what it decodes to.

Belongs here: collecting hits, following encodings down to a depth, keeping within bounds.
Does not belong here: parts, findings and verdict (`scanner`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from kb_resources.model import Severity
from kb_resources.scan.company import RawHit, keep_company, pass_named
from kb_resources.scan.context import NAMED, in_context, mention_level
from kb_resources.scan.decoders import DECODERS, Decoder, Layout
from kb_resources.scan.disguise import ATBASH, REVERSED, ROT13, unmask
from kb_resources.scan.matcher import Match, Matcher, Suspect
from kb_resources.scan.offsets import Edit, View, apply
from kb_resources.scan.structure import StructuralRule, shapes

MAX_FINDINGS = 500
MAX_PER_RULE = 40
MAX_DEPTH = 3
EXCERPT_CHARS = 200
# Text around decoded stretches that is read with them, code points.
_MARGIN = 240
# The same around single words in disguise.
_NEAR = 120
# Disguises of whole stretches, not of single words.
_WHOLE = frozenset({ROT13, ATBASH, REVERSED})
# Decoded text that is read of a part: twice its length up to so much, and this much in any case.
# Prose needs a tenth to a quarter of its length, HTML and packed JavaScript nearly twice it.
_DECODED_MOST = 3_000_000
_DECODED_FREE = 200_000
# Text around words in disguise that is read of a part.
_SUSPECT_CHARS = 400_000
# Edits that one decoder may make in a part.
_MAX_EDITS = 300_000
_RANK = {severity: rank for rank, severity in enumerate(Severity)}


class PartReader:
    """Reads one part: its words, its form, and what it decodes to."""

    def __init__(
        self, matcher: Matcher, mention: re.Pattern[str], language: str | None, *, hidden: bool
    ) -> None:
        self._matcher = matcher
        self._mention = mention
        self._language = language
        self._hidden = hidden
        self._budget = 0
        self._suspect_budget = _SUSPECT_CHARS
        self._unread = False
        self.truncated = False

    def read(self, text: str) -> list[RawHit]:
        """All hits, strongest first, bounded per rule and in all, then in order of place."""
        self._budget = min(2 * len(text), _DECODED_MOST) + _DECODED_FREE
        best: dict[tuple[str, int, int], RawHit] = {}
        for raw in chain(self._everything(text), self._left_over(text)):
            key = raw.rule_id, raw.start, raw.end
            if key not in best or _RANK[raw.severity] > _RANK[best[key].severity]:
                best[key] = raw
        counts: dict[str, int] = {}
        kept: list[RawHit] = []
        hits = keep_company(pass_named(best.values()), len(text))
        for raw in sorted(hits, key=lambda r: (-_RANK[r.severity], r.start, r.end)):
            counts[raw.rule_id] = counts.get(raw.rule_id, 0) + 1
            if counts[raw.rule_id] <= MAX_PER_RULE and len(kept) < MAX_FINDINGS:
                kept.append(raw)
            else:
                self.truncated = True
        return sorted(kept, key=lambda r: (r.start, r.end, r.rule_id))

    def _left_over(self, text: str) -> Iterator[RawHit]:
        """What could not be read is for a person to see."""
        if self._unread:
            self.truncated = True
            yield RawHit(
                "unread.any", Severity.MEDIUM, 0, min(len(text), EXCERPT_CHARS),
                "More text in disguise or more matches than are followed up.",
            )  # fmt: skip

    def _everything(self, text: str) -> Iterator[RawHit]:
        layout = Layout(text)
        for rule, start, end in shapes(layout):
            yield self._shape(rule, text, start, end)
        yield from self._words(text)
        yield from self._decoded(layout, depth=1)

    def _words(self, text: str) -> Iterator[RawHit]:
        """Hits of the words as they stand, and of words in disguise."""
        for found in self._matcher.find(text):
            if isinstance(found, Match):
                yield self._word_match(found, text)
            else:
                yield from self._suspect(found, text)

    def _suspect(self, suspect: Suspect, text: str) -> Iterator[RawHit]:
        start = max(0, suspect.start - _NEAR)
        end = min(len(text), suspect.end + _NEAR)
        if suspect.channel in _WHOLE:
            start, end = _line_around(text, suspect.start, suspect.end)
        self._suspect_budget -= end - start
        if self._suspect_budget < 0:
            self._unread = True
            return
        for edits in unmask(suspect.channel, text, start, end):
            view = apply(text, edits, start, end)
            for match in self._matcher.find(view.text):
                if isinstance(match, Match) and view.touched(match.start, match.end):
                    yield self._decoded_match(suspect.channel, match, text, view, encoding=True)

    def _decoded(self, layout: Layout, depth: int) -> Iterator[RawHit]:
        """Hits in what stretches of a text decode to, with offsets in that text."""
        for decoder in DECODERS:
            if decoder.invisible and not layout.invisible:
                continue
            for view in self._views(decoder, layout):
                yield from self._in_view(decoder, view, layout.text, depth)

    def _in_view(self, decoder: Decoder, view: View, text: str, depth: int) -> Iterator[RawHit]:
        deeper: list[Iterator[RawHit]] = []
        for found in self._matcher.find(view.text):
            if isinstance(found, Suspect):
                deeper.append(self._suspect(found, view.text))
            elif view.touched(found.start, found.end):
                yield self._decoded_match(
                    decoder.name, found, text, view, encoding=decoder.encoding
                )
        if depth < MAX_DEPTH:
            deeper.append(self._decoded(Layout(view.text), depth + 1))
        for raw in chain.from_iterable(deeper):
            if view.touched(raw.start, raw.end):
                start, end = view.origin(raw.start, raw.end)
                yield replace(raw, start=start, end=end)

    def _views(self, decoder: Decoder, layout: Layout) -> Iterator[View]:
        """Stretches with a decoder's edits applied, close ones together."""
        group: list[Edit] = []
        for count, edit in enumerate(decoder.find(layout)):
            if count >= _MAX_EDITS:
                self._unread = True
                break
            if group and edit.start - group[-1].end > _MARGIN:
                yield from self._view(group, layout.text)
                group = []
            group.append(edit)
        if group:
            yield from self._view(group, layout.text)

    def _view(self, group: list[Edit], text: str) -> Iterator[View]:
        start = max(0, group[0].start - _MARGIN)
        end = min(len(text), group[-1].end + _MARGIN)
        self._budget -= end - start + sum(max(0, len(e.text) - (e.end - e.start)) for e in group)
        if self._budget < 0:
            self._unread = True
            return
        yield apply(text, group, start, end)

    def _shape(self, rule: StructuralRule, text: str, start: int, end: int) -> RawHit:
        mention = mention_level(text, start, end, self._mention)
        severity = rule.severity
        if mention and not self._hidden and severity is not Severity.HIGH:
            severity = in_context(severity, mention=1, encoded=False, hidden=False)
        return RawHit(f"{rule.id}.any", severity, start, end, rule.explanation)

    def _name(self, match: Match) -> str:
        """Language of a match: the document's where it is among those that fit."""
        if self._language in match.languages:
            return str(self._language)
        return match.languages[0] if match.languages else "any"

    def _word_match(self, match: Match, text: str) -> RawHit:
        mention = mention_level(text, match.start, match.end, self._mention)
        severity = in_context(
            match.rule.severity, mention=mention, encoded=False, hidden=self._hidden
        )
        return RawHit(
            f"{match.rule.id}.{self._name(match)}", severity, match.start, match.end,
            match.rule.explanation, firm=self._hidden or match.rule.firm,
            named=mention == NAMED and not self._hidden,
        )  # fmt: skip

    def _decoded_match(
        self, how: str, match: Match, text: str, view: View, *, encoding: bool
    ) -> RawHit:
        start, end = view.origin(match.start, match.end)
        severity = in_context(
            match.rule.severity,
            mention=mention_level(text, start, end, self._mention),
            encoded=encoding,
            hidden=self._hidden,
        )
        plain = view.text[max(0, match.start - 20) : match.end + 80]
        return RawHit(
            f"{match.rule.id}.{self._name(match)}", severity, start, end,
            match.rule.explanation, f"{how}: {plain}"[:EXCERPT_CHARS],
            firm=encoding or self._hidden or match.rule.firm,
        )  # fmt: skip


def _line_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch with the rest of its line, at most `_MARGIN` either side."""
    before = text.rfind("\n", max(0, start - _MARGIN), start)
    after = text.find("\n", end, end + _MARGIN)
    return (
        before + 1 if before >= 0 else max(0, start - _MARGIN),
        after if after >= 0 else min(len(text), end + _MARGIN),
    )
