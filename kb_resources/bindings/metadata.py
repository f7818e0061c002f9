"""A stage's report as Dagster metadata: what an operator reads on a materialisation.

Belongs here: choosing and shaping. Text of a document (title, preview) appears only behind the
gate: Dagster keeps its events, and a blocked document must leave no text behind.
See https://docs.dagster.io/guides/build/assets/metadata-and-tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

import dagster as dg

from kb_resources.bindings.launchpad import decision_links
from kb_resources.model import AnyStage, ModelStage, Severity, Stage, StageReport, Verdict

Metadata = dict[str, dg.MetadataValue[Any]]

PREVIEW_CHARS = 400
MAX_ROWS = 200
"""Rows of a table: every run keeps its own, and a page shows no more."""
_IN_CHECKS = ("bytes", "confidence", "findings", "scanned_bytes")
"""Counts that a check of the stage carries already: every entry costs 150 bytes a document."""


def of_report(report: StageReport, facts: Mapping[str, Any]) -> Metadata:
    """Metadata of one document's pass through one stage.

    Args:
        report: what the stage did.
        facts: the ledger's facts about the document at this stage.
    """
    made: Metadata = {
        name: dg.MetadataValue.float(float(value))
        for name, value in report.counts.items()
        if value and name not in _IN_CHECKS
    }
    made["seconds"] = dg.MetadataValue.float(round(report.duration_s, 4))
    if report.version is not None and report.stage is Stage.INDEX:
        made["version"] = dg.MetadataValue.int(report.version)
    if not report.worked:
        made["unchanged"] = dg.MetadataValue.bool(True)
    if report.state is not None:
        made["state"] = dg.MetadataValue.text(report.state.value)
        made["reason"] = dg.MetadataValue.text(report.reason or "—")
    made |= _SHAPES.get(report.stage, _nothing)(report, facts)
    if report.stage is Stage.INDEX and facts.get("cleared") and facts.get("title"):
        made["title"] = dg.MetadataValue.text(str(facts["title"]))
    return made


def _nothing(report: StageReport, facts: Mapping[str, Any]) -> Metadata:  # noqa: ARG001
    return {}


def _acquire(report: StageReport, facts: Mapping[str, Any]) -> Metadata:
    made: Metadata = {"source": dg.MetadataValue.text(str(facts.get("origin", "")))}
    for name in ("digest", "media_type", "duplicate_of"):
        if value := report.details.get(name):
            made[name] = dg.MetadataValue.text(str(value))
    return made


def _parse(report: StageReport, facts: Mapping[str, Any]) -> Metadata:  # noqa: ARG001
    made: Metadata = {}
    if parser := report.details.get("parser"):
        made["parser"] = dg.MetadataValue.text(str(parser))
    if pages := report.counts.get("pages"):
        share = report.counts.get("pages_with_text", 0) / pages
        made["coverage"] = dg.MetadataValue.text(f"{share:.0%} of {pages:.0f} pages gave text")
    if recognised := report.details.get("recognised"):
        made["recognised"] = _recognised_table(recognised)
    if warnings := report.details.get("warnings"):
        made["warnings"] = dg.MetadataValue.md("\n".join(f"- {line}" for line in warnings))
    return made


def table(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """A table of at most `MAX_ROWS` rows; with its columns also where there is none.

    Args:
        columns: kind of each column by its name: `string`, `int`, `float`.
        rows: values by column name.
    """
    return dg.MetadataValue.table(
        records=[dg.TableRecord(row) for row in islice(rows, MAX_ROWS)],
        schema=dg.TableSchema([dg.TableColumn(name, kind) for name, kind in columns.items()]),
    )


def _recognised_table(pages: Any) -> dg.MetadataValue[Any]:
    """Pages read from pictures: how sure, and whether two readings agree."""
    kinds = {"page": "int", "language": "string", "confidence": "float", "agreement": "float"}
    return table(
        kinds | {"second": "string"},
        (
            {
                "page": int(page["page"]),
                "language": str(page["language"]),
                "confidence": float(page["confidence"]),
                "agreement": -1.0 if page["agreement"] is None else float(page["agreement"]),
                "second": str(page["second"]) or "none",
            }
            for page in pages
        ),
    )


def _language(report: StageReport, facts: Mapping[str, Any]) -> Metadata:  # noqa: ARG001
    return {"language": dg.MetadataValue.text(str(report.details.get("language", "und")))}


def _scan(report: StageReport, facts: Mapping[str, Any]) -> Metadata:
    made: Metadata = {
        "verdict": dg.MetadataValue.text(str(report.details.get("verdict", "none"))),
        "rule_pack": dg.MetadataValue.text(str(report.details.get("rule_pack", ""))),
    }
    if findings := facts.get("findings"):
        # Of what a block purged no word may stay; what waits for review is kept, and shown.
        held = report.details.get("verdict") == Verdict.QUARANTINE
        if held:
            key = f"{report.scope}:{report.document_id}"
            links = decision_links(key, str(facts.get("digest") or ""))
            made["decide"] = dg.MetadataValue.md(links)
        made["findings"] = _findings_table(findings, excerpts=held)
    return made


def _findings_table(findings: Any, *, excerpts: bool) -> dg.MetadataValue[Any]:
    """Few columns, since the UI gives each its share of a narrow pane: words need theirs."""
    rank = {severity.value: place for place, severity in enumerate(reversed(Severity))}
    rows = sorted(findings, key=lambda finding: rank[str(finding["severity"])])[:50]
    shown = ["excerpt"] if excerpts else []
    if excerpts and any(row["decoded"] for row in rows):
        shown.append("decoded")
    return table(
        dict.fromkeys(("severity", "where", "explanation", *shown), "string"),
        (
            {
                "severity": str(row["severity"]),
                "where": _where(row),
                "explanation": f"{row['explanation']} ({row['rule_id']})",
                **{name: str(row[name] or "") for name in shown},
            }
            for row in rows
        ),
    )


def _where(row: Mapping[str, Any]) -> str:
    """`line 3, bytes 4–9`, with the part where it is not the body."""
    part = "" if row["part"] == "body" else f"{row['part']}, "
    place = f"{row['place']}, " if row["place"] else ""
    return f"{part}{place}bytes {row['byte_start']}–{row['byte_end']}"


def _chunk(report: StageReport, facts: Mapping[str, Any]) -> Metadata:
    if report.refused or not facts.get("cleared"):
        return {}
    preview = str(facts.get("body", ""))[:PREVIEW_CHARS]
    # Indented, so that Markdown from a document is shown and not rendered.
    shown = "\n".join(f"    {line}" for line in preview.splitlines())
    return {"preview": dg.MetadataValue.md(shown)} if preview else {}


def _model(report: StageReport, facts: Mapping[str, Any]) -> Metadata:  # noqa: ARG001
    model = report.details.get("model")
    return {"model": dg.MetadataValue.text(str(model))} if model else {}


def _asked(report: StageReport, facts: Mapping[str, Any]) -> Metadata:
    made = _model(report, facts)
    if outcome := report.details.get("outcome"):
        made["outcome"] = dg.MetadataValue.text(str(outcome))
    if warnings := report.details.get("warnings"):
        made["warnings"] = dg.MetadataValue.md("\n".join(f"- {line}" for line in warnings))
    return made


def _supersede(report: StageReport, facts: Mapping[str, Any]) -> Metadata:  # noqa: ARG001
    ended = report.details.get("superseded_versions") or ()
    others = report.details.get("superseded_documents") or ()
    if not ended and not others:
        return {}
    parts = [f"version {number}" for number in ended] + [str(name) for name in others]
    return {"ended": dg.MetadataValue.text(", ".join(parts))}


_SHAPES: dict[AnyStage, Callable[[StageReport, Mapping[str, Any]], Metadata]] = {
    Stage.ACQUIRE: _acquire,
    Stage.PARSE: _parse,
    Stage.LANGUAGE: _language,
    Stage.SCAN: _scan,
    Stage.CHUNK: _chunk,
    Stage.EMBED: _model,
    Stage.INDEX: _nothing,
    Stage.SUPERSEDE: _supersede,
    ModelStage.CONVERT: _asked,
    ModelStage.ENRICH: _asked,
}
