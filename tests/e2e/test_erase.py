"""Canary search: after `kb erase` a word of the document is nowhere in the installation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_resources.store.server import EmbeddedServer
from kb_resources.store.server_binaries import wheel_bin_dir
from tests.e2e.conftest import Kb

if TYPE_CHECKING:
    from collections.abc import Sequence

CANARY = b"quibblewarbler"
TEXT = "# Case {0}\n\nThe {0} was seen near the harbour on the second of May 2024.\n"
LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave in a calendar year.\n"


@pytest.fixture
def installation(models: Path) -> Iterator[Kb]:
    """An installation of its own with a Dagster instance."""
    folder = Path(tempfile.mkdtemp(prefix="kb-e2e-"))
    folder.chmod(0o711)
    command = Kb(folder / "home", models)
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from kb_assets.environment import prepare_home\n"
            "from kb_resources.settings import load_settings\nprepare_home(load_settings())",
        ],
        env=command.environment,
        check=True,
    )
    yield command
    command("db", "stop")
    shutil.rmtree(folder)


def _dumps(home: Path) -> dict[str, bytes]:
    server = EmbeddedServer(home / "postgres")
    return {
        name: subprocess.run(
            [wheel_bin_dir() / "pg_dump", "--dbname", server.dsn("owner", name)],
            capture_output=True,
            check=True,
        ).stdout
        for name in ("kb", "dagster")
    }


def _files_with(folders: Sequence[Path], word: bytes) -> list[str]:
    found = []
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = Path(parent) / name
                if word in name.encode() or (path.is_file() and word in path.read_bytes()):
                    found.append(str(path))
    return found


@pytest.mark.requirement("O-12", "P-77")
def test_a_canary_is_found_nowhere_after_erasing(installation: Kb, tmp_path: Path) -> None:
    word = CANARY.decode()
    (tmp_path / f"{word}.md").write_text(TEXT.format(word))
    (tmp_path / "leave.md").write_text(LEAVE)
    done = installation("ingest", str(tmp_path), "--scope", "acme", "--json")
    assert done.code == 0, done.err
    [canary] = [row for row in done.lines if word in row["document_id"]]
    for question in (("search", "seen near the harbour"), ("ask", "When was it seen?")):
        asked = installation(*question, "--scope", "acme", "--json")
        assert asked.code in (0, 4), asked.err
    before = _dumps(installation.home)
    assert CANARY in before["kb"]
    assert CANARY in before["dagster"]
    assert _files_with([installation.home], CANARY)
    options = ["--scope", "acme", "--reason", "asked by the data subject", "--json"]
    unasked = installation("erase", canary["document_id"], *options)
    assert unasked.code == 2
    assert "--yes" in unasked.err
    options.append("--yes")
    erased = installation("erase", canary["document_id"], *options)
    assert erased.code == 0, erased.err
    [certificate] = erased.json
    assert certificate["finished_at"]
    assert certificate["counts"]["database"]["passage"] >= 1
    assert certificate["counts"]["dagster"]["event_logs"] >= 8
    after = _dumps(installation.home)
    assert {name for name, text in after.items() if CANARY in text} == set()
    assert _files_with([installation.home], CANARY) == []
    found = installation("search", "annual leave", "--scope", "acme", "--json")
    assert "leave" in json.dumps(found.json)
    again = installation("erase", canary["document_id"], *options)
    assert again.code == 3
