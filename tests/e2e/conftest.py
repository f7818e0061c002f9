"""A knowledge base as a user has it: the real command, its own server, its own home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kb_resources import embed

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Kb:
    """The command `kb` with one home."""

    home: Path
    models: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "DAGSTER_"))}
        return kept | {"KB_HOME": str(self.home), "KB_MODELS_DIR": str(self.models)}

    def start(self, *arguments: str, **extra: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "kb.cli", *arguments],
            cwd=ROOT,
            env=self.environment | extra,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, **extra: str) -> Done:
        with self.start(*arguments, **extra) as process:
            out, err = process.communicate(timeout=240)
        return Done(process.returncode, out, err)


def ends(done: Done | Sequence[dict[str, Any]]) -> dict[str, str]:
    """State by file name."""
    rows = done.lines if isinstance(done, Done) else done
    return {Path(row["path"]).name: row["state"] for row in rows}


@pytest.fixture(scope="session")
def models() -> Path:
    folder = ROOT / ".kb" / "models"
    embed.prepare(folder, embed.DEFAULT_MODEL)
    return folder


@pytest.fixture(scope="module")
def kb(models: Path) -> Iterator[Kb]:
    folder = Path(tempfile.mkdtemp(prefix="kb-e2e-"))
    folder.chmod(0o711)
    command = Kb(folder / "home", models)
    yield command
    command("db", "stop")
    shutil.rmtree(folder)
