"""The documentation holds together: links lead somewhere, the metrics it names exist."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    return [
        ROOT / name
        for name in listed
        if name and not name.startswith(("examples", "tests/")) and (ROOT / name).exists()
    ]


def anchors(text: str) -> set[str]:
    """Anchors as GitHub and the site make them of headings."""
    found = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[`*_]|\[|\]\([^)]*\)", "", heading) for heading in found)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text())
    broken = []
    for link, image in _LINK.findall(text):
        target, _, anchor = (link or image).partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists():
            broken.append(target)
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
            broken.append(f"{target}#{anchor}")
    assert broken == []


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    from kb.http.metrics import Metrics

    served = {
        sample.name
        for family in Metrics().registry.collect()
        for sample in family.samples or [family]  # type: ignore[list-item]
    }
    known = {
        f"{family.name}{suffix}"
        for family in Metrics().registry.collect()
        for suffix in ("", "_total", "_bucket", "_sum", "_count")
    } | served
    board = json.loads((ROOT / "deploy" / "grafana" / "dagster-kb.json").read_text())
    asked = set()
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            asked |= set(re.findall(r"\bkb_\w+", target["expr"]))
    assert asked
    assert asked <= known
