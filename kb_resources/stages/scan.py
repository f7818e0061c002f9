"""Stage 4: does the text speak to a model? The verdict is given for exactly these bytes.

Input is the raw extraction, hidden parts included, and what is shown along with it (title, names,
headings, facts), before any model sees it; doubts about a recognised text join its findings.
Fingerprint: bytes, body, title, names, rule pack, trust. `block` purges every text; `quarantine`
keeps them for review.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kb_resources.model import (
    DocumentState,
    Finding,
    HiddenText,
    ParsedDocument,
    Refusal,
    Stage,
    Verdict,
    content_hash,
)
from kb_resources.parse import reading_findings
from kb_resources.scan import Opinion, SecondOpinion, ShownText, shown_texts
from kb_resources.stages import common, outward
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.stages.common import Made, version_key
from kb_resources.stages.group import Mark, Results, Step
from kb_resources.store import documents, locks, reviews, versions
from kb_resources.store.documents import Conn, DocumentRow

STAGE = Stage.SCAN
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Texts:
    """What is scanned, and which rules a person has released for it."""

    document: ParsedDocument
    raw_text: str
    hidden: tuple[HiddenText, ...]
    released: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Judged:
    """The verdict, what it rests on, and whose it is."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    actor: str


def _look(_conn: Conn, caps: Capabilities, row: DocumentRow, _results: Results) -> Mark:
    asked = caps.second_opinion
    barred = asked is not None and not outward.may_leave(caps, row, caps.second_opinion_at)
    return Mark(
        fingerprint(
            *(row.digest, row.body_digest, row.title, _names(row)),
            *(caps.versions.rule_pack, row.trusted_by),
            *((asked.name, "barred" if barred else "asked") if asked else ()),
        )
    )


def _names(row: DocumentRow) -> tuple[str, str, str]:
    return (row.document_id, row.origin, row.name or "")


def _load(conn: Conn, rows: Sequence[DocumentRow]) -> Mapping[int, _Texts]:
    keys = [version_key(row) for row in rows]
    documents, raw = versions.load_all_parsed(conn, keys), versions.load_extractions(conn, keys)
    released = reviews.released_rules(conn, keys)
    return {
        key: _Texts(document, *raw[key], released.get(key, frozenset()))
        for key, document in documents.items()
        if key in raw
    }


def _work(caps: Capabilities, row: DocumentRow, mark: Mark, texts: _Texts | None) -> Made:
    texts = versions.there(texts)
    caps.count("scanned")
    raw_text, hidden = texts.raw_text, texts.hidden
    shown = shown_texts(texts.document, _names(row), hidden)
    result = caps.scan(
        raw_text, hidden, shown=shown, language=row.language, trusted=bool(row.trusted_by)
    )
    findings = (*result.findings, *(doubts := reading_findings(texts.document)))
    verdict, actor = result.verdict, row.trusted_by or caps.actor
    warnings: list[str] = []
    asked = caps.second_opinion
    if asked and verdict is Verdict.CLEAN and not row.trusted_by:
        opinion = _opinion(caps, row, asked, raw_text, hidden, shown)
        findings = (*findings, *opinion.findings)
        doubts = (*doubts, *opinion.findings)
        if opinion.failed:
            warnings.append(f"No second opinion ({opinion.failed}); the rules decided alone.")
            _LOG.warning(
                "no second opinion on %s v%s: %s", row.key, row.latest_version, opinion.failed
            )
    if doubts and verdict is Verdict.CLEAN:
        verdict = Verdict.QUARANTINE
    if verdict is Verdict.QUARANTINE and {f.rule_id for f in findings} <= texts.released:
        # A person has seen exactly these rules speak about exactly these bytes.
        verdict, actor = Verdict.CLEAN, "review"
    return Made(
        row,
        mark.fingerprint,
        output=fingerprint(verdict.value, row.body_digest),
        counts={
            "findings": len(findings),
            "scanned_bytes": sum(
                len(text.encode())
                for text in (raw_text, *(h.text for h in hidden), *(s.text for s in shown))
            ),
            **{
                f"findings_{severity}": count
                for severity, count in Counter(f.severity.value for f in findings).items()
            },
        },
        details={
            "verdict": verdict.value,
            "rule_pack": caps.versions.rule_pack,
            "trusted_by": row.trusted_by,
            "truncated": result.truncated,
            "rules": sorted({finding.rule_id for finding in findings}),
            "covers": fingerprint(raw_text, hidden, shown),
            "warnings": warnings,
        },
        end=_end(verdict, findings),
        product=_Judged(verdict, findings, actor),
    )


def _write(conn: Conn, caps: Capabilities, made: Sequence[Made]) -> Mapping[int, Exception]:
    # A decision in review, or another scan's verdict, that came since and is another one stands.
    rows = documents.load(conn, [each.row.key for each in made])
    now = {row.document_key: _held(row) for row in rows}
    late: dict[int, Exception] = {}
    for each in made:
        judged: _Judged = each.product
        same = (judged.verdict.value, each.end.state.value if each.end else None)
        if now.get(each.row.document_key) not in (_held(each.row), same):
            late[each.row.document_key] = locks.changed(each.row)
            continue
        if each.end is None and each.row.version_state is not None:
            versions.set_state(conn, version_key(each.row), None)
        versions.record_verdict(
            conn,
            each.row,
            judged.verdict,
            judged.findings,
            rule_pack=caps.versions.rule_pack,
            actor=judged.actor,
        )
        if judged.verdict is Verdict.BLOCK:
            common.purge(conn, each.row, STAGE)
    return late


def _held(row: DocumentRow) -> tuple[str | None, str | None]:
    """Verdict, and the end it led to."""
    return row.verdict, None if row.version_state == DocumentState.INDEXED else row.version_state


def _after(caps: Capabilities, made: Made) -> None:
    if made.product.verdict is Verdict.BLOCK:
        common.drop_bytes(caps, made.row)


def _opinion(
    caps: Capabilities,
    row: DocumentRow,
    asked: SecondOpinion,
    raw_text: str,
    hidden: Sequence[HiddenText],
    shown: Sequence[ShownText],
) -> Opinion:
    """The model's, where the document may go to it; decided and written down before it does."""
    may = caps.second_opinion_at is not None and outward.write_down(
        caps,
        row,
        caps.second_opinion_at,
        purpose="second_opinion",
        digest=content_hash(raw_text),
        size=len(raw_text),
    )
    return asked(raw_text, hidden, shown) if may else Opinion(failed="disclosure_blocked")


def _end(verdict: Verdict, findings: tuple[Finding, ...]) -> Refusal | None:
    if verdict is Verdict.CLEAN:
        return None
    worst = _worst(findings)
    if verdict is Verdict.BLOCK:
        return Refusal(
            DocumentState.BLOCKED,
            f"The scan blocked it: {worst}. Its text was deleted; the findings name the places.",
        )
    return Refusal(
        DocumentState.QUARANTINED,
        f"The scan holds it for review: {worst}. Look at its findings, then release or reject it.",
    )


def _worst(findings: tuple[Finding, ...]) -> str:
    order = ("high", "medium", "low", "info")
    finding = min(findings, key=lambda f: order.index(f.severity.value))
    return f"{finding.explanation.rstrip('.') or finding.rule_id} ({finding.rule_id})"


STEP = Step(STAGE, _look, _work, _write, load=_load, after=_after)
