"""What a command imports when there is nothing to do, or only words to look up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Kb

ROOT = Path(__file__).parents[2]
LIBRARIES = frozenset({
    "PIL", "dagster", "docling", "docling_core", "fastapi", "http", "langdetect", "lxml", "numpy",
    "onnx", "onnxruntime", "pandas", "pgvector", "py3langid", "pydantic", "rich", "tokenizers",
    "urllib3",
})  # fmt: skip
WORK = frozenset({
    "kb_resources.acquire.fetch", "kb_resources.answer", "kb_resources.chunk.chunker",
    "kb_resources.embed.onnx_embedder", "kb_resources.embed.unigram",
    "kb_resources.stages.erase", "kb_resources.stages.removal", "kb_resources.supersede.hunks",
    "kb_resources.language.default", "kb_resources.parse.route", "kb_resources.scan.scanner",
    "kb_resources.stages.parse", "kb_resources.stages.scan", "kb_resources.stages.embed",
})  # fmt: skip
PROBE = """
import atexit, sys
atexit.register(lambda: sys.stderr.write("\\nmodules: " + " ".join(sys.modules)))
from kb.cli import main
main()
"""


def _loaded(kb: Kb, *arguments: str) -> set[str]:
    """Modules in a process that ran one command, with the names of their top packages."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=ROOT,
        env=kb.environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    modules = set(done.stderr.rpartition("modules: ")[2].split())
    return modules | {name.partition(".")[0] for name in modules}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sources")
    (made / "leave.md").write_text("# Leave\n\nEvery employee has thirty days of paid leave.\n")
    (made / "pay.html").write_text("<h1>Pay</h1><p>Salaries are paid on the last working day.</p>")
    return made


@pytest.fixture(scope="module")
def first(kb: Kb, folder: Path) -> set[str]:
    """What the first ingest loaded, which had all the work to do."""
    return _loaded(kb, "ingest", str(folder), "--scope", "acme", "--no-dagster", "--json")


@pytest.mark.requirement("O-61")
def test_an_unchanged_folder_loads_nothing_that_works_on_documents(
    kb: Kb, folder: Path, first: set[str]
) -> None:
    assert {"numpy", "onnxruntime", "kb_resources.scan.scanner"} <= first  # the probe sees
    second = _loaded(kb, "ingest", str(folder), "--scope", "acme", "--no-dagster", "--json")
    assert not second & (LIBRARIES | WORK)


def test_a_search_by_words_loads_no_model_and_no_arrays(kb: Kb, first: set[str]) -> None:
    assert first
    loaded = _loaded(kb, "search", "days of leave", "--scope", "acme", "--mode", "text", "--json")
    assert not loaded & (LIBRARIES | WORK)
    assert "numpy" in _loaded(kb, "search", "days of leave", "--scope", "acme", "--json")
