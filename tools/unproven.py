"""List the rows of a requirements table that no test is marked to prove.

Usage: python tools/unproven.py [requirements.md]

Rows are table lines that begin with an id such as `| O-07 |`. A test proves a row with
`@pytest.mark.requirement("O-07")`. Without a file, KB_TEST_DATA/requirements.md is read.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from pathlib import Path

ROW = re.compile(r"^\| ([A-Z]-\d+) \|[^|]*\| ([^|]*)", re.MULTILINE)
MARK = re.compile(r"mark\.requirement\(([^)]*)\)")
ID = re.compile(r"[A-Z]-\d+")


def proven(tests: Path) -> dict[str, list[str]]:
    """Test files by the requirement ids they are marked with."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(tests.rglob("test_*.py")):
        for mark in MARK.findall(path.read_text()):
            for row in ID.findall(mark):
                found[row].append(path.name)
    return found


def main() -> int:
    """Print the unproven rows; exit 2 without a requirements file."""
    default = Path(os.environ.get("KB_TEST_DATA", ".")) / "requirements.md"
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    if not source.is_file():
        sys.stderr.write(f"No requirements at {source}. Name the file, or set KB_TEST_DATA.\n")
        return 2
    rows = dict(ROW.findall(source.read_text()))
    marked = proven(Path(__file__).parent.parent / "tests")
    missing = [row for row in rows if row not in marked]
    for row in missing:
        sys.stdout.write(f"{row}  {rows[row].strip()[:110]}\n")
    sys.stdout.write(f"{len(rows) - len(missing)} of {len(rows)} rows are proven.\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
