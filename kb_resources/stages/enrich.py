"""Stage between index and supersede, off by default: a model's notes on a document's sections.

Bottom-up over the sections from 500 characters on: a section's notes are made of its own text and
of the notes on what lies below it. Each is stored under the hash of all that was sent, so that an
unchanged section asks nothing again, in whichever version or document of the scope it stands.
Fingerprint: body, title, model and prompt, whether it may leave.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kb_resources.generate import (
    THRESHOLD_CHARS,
    Enricher,
    Notes,
    Request,
    Section,
    notes_request,
    read_notes,
    sections,
)
from kb_resources.model import ModelStage, StageReport, Verdict
from kb_resources.stages import common, outward
from kb_resources.stages.asking import BLOCKED, ask
from kb_resources.stages.capabilities import Asking, Capabilities, fingerprint
from kb_resources.store import locks, model_calls, versions
from kb_resources.store.documents import DocumentRow

STAGE = ModelStage.ENRICH
_WHY = {
    "cut_off": "{n} replies were cut off",
    "refused": "the model refused {n} times",
    "empty": "{n} replies were empty",
    "unreadable": "{n} replies were not the JSON that was asked for",
    "injection": "{n} replies speak to a model and were thrown away",
    "too_many": "{n} sections are beyond KB_ENRICH_CALLS",
    BLOCKED: "its class keeps it from that machine (kb audit classify)",
}


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Make the notes of one published version."""
    started = time.perf_counter()
    asking: Asking[Enricher] = caps.asking[STAGE]
    if not row.cleared:
        return common.not_cleared(STAGE, row)
    barred = not outward.may_leave(caps, row, asking.at)
    mark = fingerprint(row.body_digest, row.title, asking.name, barred)
    if known := common.known_result(caps, row, STAGE, mark):
        return common.unchanged(STAGE, row, known, started)
    with caps.database.transaction("pipeline") as conn:
        document = versions.load_parsed(conn, common.version_key(row))
    work = _Work(caps, row, asking, document.body.encode())
    work.over(sections(document))
    with caps.database.transaction("pipeline") as conn:
        locks.hold(conn, row)
        model_calls.replace_notes(conn, row, asking.name, work.made)
        return common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint="" if work.gave_up else mark,
            output="",
            counts={"notes": len(work.made), "asked": work.asked, "known": work.known},
            details={
                "model": asking.name,
                "outcomes": dict(work.outcomes),
                "warnings": work.warnings(),
            },
        )


def _only_one(section: Section) -> Section | None:
    """The section inside that is all of it, and whose notes are its own."""
    [inside, *others] = section.parts or (None,)
    return inside if isinstance(inside, Section) and not others else None


@dataclass(slots=True)
class _Work:
    """One document's notes while they are made.

    Attributes:
        body: UTF-8.
        made: rows for the store.
        shown: what stands for a section in what is above it: its summary, else its text.
        asked: calls.
        known: notes taken over.
        outcomes: of calls that gave no notes, by how often.
        gave_up: outcome after which nothing more is asked; empty while the model answers.
    """

    caps: Capabilities
    row: DocumentRow
    asking: Asking[Enricher]
    body: bytes
    made: list[dict[str, Any]] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    known: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    gave_up: str = ""

    def over(self, root: Section) -> None:
        """All sections, those below before those above."""
        for section, depth in root.bottom_up():
            text = self._text(section)
            if (inside := _only_one(section)) is not None:
                self.shown[section.node_id] = self.shown[inside.node_id]
                continue
            self.shown[section.node_id] = text
            if section.chars < THRESHOLD_CHARS:
                continue
            parts = [self._part(part) for part in section.parts]
            request = notes_request(section.title, parts)
            notes = self._known(request) or self._made(request, text)
            if notes is None:
                continue
            self.shown[section.node_id] = notes.summary
            self.made.append(
                {
                    "node_id": section.node_id,
                    "depth": depth,
                    "byte_start": section.byte_start,
                    "byte_end": section.byte_end,
                    "node_hash": request.digest,
                    "notes": notes.to_json(),
                }
            )

    def warnings(self) -> list[str]:
        """Sentences for a person."""
        said = [
            f"Sections have no notes: {_WHY.get(outcome, 'no reply came (' + outcome + ')')}."
            for outcome in self.outcomes
        ]
        return [
            text.replace("{n}", str(n))
            for text, n in zip(said, self.outcomes.values(), strict=True)
        ]

    def _text(self, section: Section) -> str:
        return self.body[section.byte_start : section.byte_end].decode()

    def _part(self, part: Any) -> str:
        if not isinstance(part, Section):
            return str(part.text)
        shown = self.shown[part.node_id]
        return f"{part.title}: {shown}" if part.title and shown else shown

    def _known(self, request: Request) -> Notes | None:
        with self.caps.database.transaction("pipeline") as conn:
            found = model_calls.known_notes(
                conn, self.row.scope_id, self.asking.name, [request.digest]
            )
        if request.digest not in found:
            return None
        self.known += 1
        return Notes.from_json(found[request.digest])

    def _made(self, request: Request, text: str) -> Notes | None:
        """Ask; None where nothing came of it, which is counted."""
        if self.gave_up:
            return None
        if self.asked >= self.asking.call.most_calls:
            self.outcomes["too_many"] += 1
            return None
        answer = ask(self.caps, self.row, STAGE, self.asking, self.asking.call.model, request)
        if answer.outcome == BLOCKED:
            self.outcomes[BLOCKED] = 1
            self.gave_up = BLOCKED
            return None
        self.asked += 1
        if answer.text is None:
            self.outcomes[answer.outcome] += 1
            if answer.asked_again:
                self.gave_up = answer.outcome
            return None
        notes = read_notes(answer.text, text)
        outcome = "unreadable" if notes is None else "" if self._clean(notes) else "injection"
        if outcome:
            self.outcomes[outcome] += 1
            return None
        return notes

    def _clean(self, notes: Notes) -> bool:
        """Whether a reader's model may be shown them: the rules of the scan, whoever is trusted."""
        found = self.caps.scan(notes.text, (), shown=(), language=self.row.language, trusted=False)
        return found.verdict is Verdict.CLEAN
