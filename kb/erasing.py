"""Erasing and exporting from the reading side's commands and routes.

Belongs here: Dagster's storage, which a child process empties, so that this side never imports
Dagster or what does. What does not: which stores there are (`kb_resources.compose_erasing`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict

from kb.running import dagster_home
from kb_resources.compose_erasing import eraser
from kb_resources.errors import UnavailableError
from kb_resources.settings import Settings
from kb_resources.stages.erase import Eraser, Forgotten
from kb_resources.stages.line import Line


def open_eraser(settings: Settings, line: Line, *, rewrite: bool | None = None) -> Eraser:
    """The eraser of an installation.

    Args:
        settings: of the installation.
        line: its open line.
        rewrite: whether the database's files are rewritten at once; None: where that is quick.
    """
    return eraser(
        settings,
        line,
        dagster=lambda what: forget_in_dagster(settings, what),
        dagster_here=dagster_home(settings) is not None,
        rewrite=rewrite,
    )


def forget_in_dagster(settings: Settings, what: Forgotten) -> Mapping[str, int]:
    """Let a child process delete what Dagster's storage knows; nothing where there is none.

    Raises:
        UnavailableError: the storage is away.
    """
    home = dagster_home(settings)
    if home is None:
        return {}
    child = subprocess.run(
        [sys.executable, "-m", "kb_assets.forget"],
        input=json.dumps(asdict(what)),
        env=os.environ | {"KB_HOME": str(settings.home), "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode:
        raise UnavailableError(
            f"Dagster's storage was not emptied: {child.stderr.strip()[-400:]}",
            next_step="Start its database, then run kb erasures --resume.",
        )
    counts: dict[str, int] = json.loads(child.stdout)
    return counts
