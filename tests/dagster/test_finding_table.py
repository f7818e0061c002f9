"""The table of findings on a scan's materialisation: words only of what is kept for review."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from kb_resources.bindings import metadata
from kb_resources.model import Finding, Severity, Stage, StageReport

FINDING = Finding(
    "secrecy-user.en", Severity.MEDIUM, "body", "line 3", 4, 9, "do not tell the user", None,
    "Wants something kept from the user.",
)  # fmt: skip


@pytest.mark.requirement("P-81")
@pytest.mark.parametrize(("verdict", "shown"), [("quarantine", True), ("block", False)])
def test_a_reviewer_sees_excerpt_and_explanation_and_a_block_leaves_no_word(
    verdict: str, shown: bool
) -> None:
    report = StageReport(Stage.SCAN, "acme", "a", details={"verdict": verdict, "rule_pack": "1"})
    table = metadata.of_report(report, {"findings": [asdict(FINDING)]})["findings"]
    [record] = table.value.records
    assert record.data["explanation"] == f"{FINDING.explanation} ({FINDING.rule_id})"
    assert record.data["where"] == "line 3, bytes 4–9"
    assert "decoded" not in record.data
    assert ("excerpt" in record.data) is shown
    assert (FINDING.excerpt in str(table.value)) is shown
