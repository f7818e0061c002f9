"""What of a source became text, told on the command line and beside a materialisation."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from kb.cli.coverage import coverage_lines
from kb_resources.model import (
    Coverage,
    ParsedDocument,
    RecognisedPage,
    RemovedLine,
    Stage,
    StageReport,
)
from kb_resources.parse.doubts import reading_findings
from kb_resources.parse.sandbox.wire import decode, encode
from kb_resources.store import codec

COVERAGE = Coverage(
    pages=7,
    pages_with_text=5,
    pages_ocr=2,
    pages_needing_ocr=(3, 4),
    tables=3,
    replacement_share=0.0123,
    removed_lines=(
        RemovedLine(1, "7", "page_number"),
        RemovedLine(2, "8", "page_number"),
        RemovedLine(None, "Accept cookies", "cookie_notice"),
    ),
    warnings=("Page 6 could not be decoded.",),
    table_confidences=(1.0, 0.5, 0.95),
    recognised=(
        RecognisedPage(1, "deu", 0.96, 0.99, "tesseract psm 6"),
        RecognisedPage(2, "srp", 0.88, 0.61, "tesseract psm 6"),
        RecognisedPage(5, "eng", 0.9, None),
    ),
)


def test_every_part_of_the_report_has_its_line() -> None:
    assert list(coverage_lines(asdict(COVERAGE))) == [
        ("pages", "5 of 7 with text"),
        ("recognised", "3 pages read from pictures"),
        ("", "page 1 (deu): confidence 96%, two readings share 99% of their words"),
        ("", "page 2 (srp): confidence 88%, two readings share 61% of their words"),
        ("", "page 5 (eng): confidence 90%, read only once"),
        ("unread", "pages 3, 4 hold pictures or broken fonts"),
        ("tables", "3, 2 rebuilt by guesswork (least sure 0.50)"),
        ("unreadable", "1.23% of the characters have no readable glyph"),
        ("removed", "3 lines (2 page number, 1 cookie notice)"),
        ("warning", "Page 6 could not be decoded."),
    ]


def test_a_report_of_an_earlier_version_or_of_nothing_is_short() -> None:
    assert list(coverage_lines({})) == []
    assert list(coverage_lines({"pages": 2, "pages_with_text": 2, "tables": 1})) == [
        ("pages", "2 of 2 with text"),
        ("tables", "1"),
    ]


def test_coverage_survives_the_child_and_the_ledger() -> None:
    document = ParsedDocument(
        title="t", media_type="application/pdf", body="", blocks=(), coverage=COVERAGE
    )
    back = decode(encode(document))
    assert isinstance(back, ParsedDocument)
    assert back.coverage == COVERAGE
    assert codec.coverage_from_json(codec.coverage_to_json(COVERAGE)) == COVERAGE
    assert codec.coverage_from_json({"pages": 1}).recognised == ()


@pytest.mark.requirement("P-03")
def test_only_doubtful_pages_become_findings() -> None:
    document = ParsedDocument(
        title="t", media_type="application/pdf", body="", blocks=(), coverage=COVERAGE
    )
    findings = reading_findings(document)
    assert [(finding.rule_id, finding.place) for finding in findings] == [
        ("ocr.doubtful", "page 2"),
        ("ocr.doubtful", "page 5"),
    ]
    assert "share only 61%" in findings[0].explanation
    assert "read only once" in findings[1].explanation


def test_a_materialisation_shows_each_recognised_page() -> None:
    from kb_resources.bindings.metadata import of_report

    report = StageReport(
        stage=Stage.PARSE,
        scope="acme",
        document_id="lease",
        counts={"pages": 7, "pages_with_text": 5},
        details={"recognised": [asdict(page) for page in COVERAGE.recognised]},
    )
    table = of_report(report, {})["recognised"].value
    rows = [dict(record.data) for record in table.records]
    assert [(row["page"], row["agreement"]) for row in rows] == [(1, 0.99), (2, 0.61), (5, -1.0)]
