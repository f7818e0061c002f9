"""The house's rules that no linter holds: what imports what at start, and how long modules get."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kb_resources", "kb_checks", "kb_assets", "kb")
HEAVY = ("docling", "onnxruntime", "pandas", "torch", "tokenizers", "langdetect", "py3langid")


def _loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


@pytest.mark.requirement("O-61")
@pytest.mark.parametrize(
    "statement",
    [
        "import kb.cli",
        "import kb.client, kb.reader",
        "import kb_resources.compose",
        "import kb_resources.stages.line",
    ],
)
def test_importing_loads_no_heavy_library(statement: str) -> None:
    assert not _loaded_after(statement) & set(HEAVY)


def test_the_reading_side_never_loads_dagster() -> None:
    loaded = _loaded_after("import kb.cli.search, kb.reader, kb.ingesting")
    assert not loaded & {"dagster", "kb_assets", "kb_checks"}


def test_parsing_needs_no_torch() -> None:
    loaded = _loaded_after(
        "from kb_resources.parse import parse_here\n"
        "from kb_resources.model import ParsedDocument\n"
        "found = parse_here(b'<h1>Leave</h1><p>Thirty days.</p>', 'text/html', 'a.html')\n"
        "assert isinstance(found, ParsedDocument), found"
    )
    assert "torch" not in loaded


def test_modules_stay_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert not long


def test_every_module_says_what_belongs_in_it() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not re.match(r'r?"""', path.read_text())
    ]
    assert not silent


def test_no_tracked_file_names_a_path_of_a_machine() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    homes = r"/(?:root|(?:home|Users)/[a-z]+)/"
    here = "|".join(re.escape(f"{folder}/") for folder in (ROOT, *ROOT.parents) if folder.parts[2:])
    suspicious = re.compile(f"{homes}|{here}" if here else homes)
    named = [
        name
        for name in listed.stdout.split("\0")
        if name.endswith((".py", ".md", ".toml", ".yaml", ".sql", ".sh", "Makefile"))
        and (ROOT / name).is_file()
        and name != "tests/architecture/test_house.py"
        and suspicious.search((ROOT / name).read_text("utf-8"))
    ]
    assert not named
