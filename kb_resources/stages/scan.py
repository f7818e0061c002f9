"""Stage 4: does the text speak to a model? The verdict is given for exactly these bytes.

Input is the raw extraction, hidden parts included, and what is shown along with it (title, names,
headings, facts), before any model sees it; doubts about a recognised text join its findings.
Fingerprint: bytes, body, title, names, rule pack, trust. `block` purges every text; `quarantine`
keeps them for review.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence

from kb_resources.model import (
    DocumentState,
    Finding,
    HiddenText,
    Refusal,
    Stage,
    StageReport,
    Verdict,
    content_hash,
)
from kb_resources.parse import reading_findings
from kb_resources.scan import Opinion, SecondOpinion, ShownText, shown_texts
from kb_resources.stages import common, outward
from kb_resources.stages.capabilities import Capabilities, fingerprint
from kb_resources.store import documents, reviews, staging, versions
from kb_resources.store.documents import DocumentRow

STAGE = Stage.SCAN
_LOG = logging.getLogger(__name__)


def run(caps: Capabilities, row: DocumentRow) -> StageReport:
    """Scan one version and record its verdict."""
    started = time.perf_counter()
    asked = caps.second_opinion
    barred = asked is not None and not outward.may_leave(caps, row, caps.second_opinion_at)
    names = (row.document_id, row.origin, row.name or "")
    mark = fingerprint(
        *(row.digest, row.body_digest, row.title, names, caps.versions.rule_pack, row.trusted_by),
        *((asked.name, "barred" if barred else "asked") if asked else ()),
    )
    if known := common.known_result(caps, row, STAGE, mark):
        return common.unchanged(STAGE, row, known, started)
    caps.count("scanned")
    with caps.database.transaction("pipeline") as conn:
        raw_text, hidden = versions.load_extraction(conn, common.version_key(row))
        document = versions.load_parsed(conn, common.version_key(row))
        released = reviews.released_rules(conn, common.version_key(row))
    shown = shown_texts(document, names, hidden)
    result = caps.scan(
        raw_text, hidden, shown=shown, language=row.language, trusted=bool(row.trusted_by)
    )
    findings = (*result.findings, *(doubts := reading_findings(document)))
    verdict, actor = result.verdict, row.trusted_by or caps.actor
    warnings: list[str] = []
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
    if verdict is Verdict.QUARANTINE and {f.rule_id for f in findings} <= released:
        # A person has seen exactly these rules speak about exactly these bytes.
        verdict, actor = Verdict.CLEAN, "review"
    end = _end(verdict, findings)
    with caps.database.transaction("pipeline") as conn:
        documents.hold(conn, row)
        if end is None:
            versions.set_state(conn, common.version_key(row), None)
        versions.record_verdict(
            conn,
            row,
            verdict,
            findings,
            rule_pack=caps.versions.rule_pack,
            actor=actor,
        )
        made = common.finish(
            conn,
            caps,
            STAGE,
            row,
            started,
            fingerprint=mark,
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
            end=end,
        )
        if verdict is Verdict.BLOCK:
            versions.purge_texts(conn, row)
            staging.forget_after(conn, row, Stage.PARSE, inclusive=True, sparing=STAGE)
    if verdict is Verdict.BLOCK:
        common.drop_bytes(caps, row)
    return made


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
