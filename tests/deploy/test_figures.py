"""The documentation's figures are those that the script draws; pictures stay small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_BYTES = 150_000


def test_the_figures_are_those_that_the_script_draws() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "figures.py"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs" / "img").rglob("*.png")), ids=lambda path: path.name
)
def test_a_picture_is_small(picture: Path) -> None:
    assert picture.stat().st_size <= MAX_BYTES


def test_every_operator_task_takes_six_clicks_at_most() -> None:
    """Counted by tools/operator_tasks while it did them; it writes this part."""
    page = (ROOT / "docs" / "operations.md").read_text()
    tasks = page.partition("<!-- tasks: begin -->")[2].partition("<!-- tasks: end -->")[0]
    clicks = [int(number) for number in re.findall(r"^(\d+) clicks?: ", tasks, re.MULTILINE)]
    assert len(clicks) == len(re.findall(r"^### ", tasks, re.MULTILINE)) == 10
    assert max(clicks) <= 6
