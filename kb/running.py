"""Registered documents through the line, here or in Dagster, with those that they wake.

Belongs here: batches, the child process of a Dagster run, the commit of the git export. What does
not: what was asked for (`ingesting`), the stages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kb_resources.compose_erasing import export_target
from kb_resources.errors import UnavailableError
from kb_resources.model import AnyStage, DocumentKey, Stage, StageReport
from kb_resources.settings import Settings
from kb_resources.stages.capabilities import Capabilities
from kb_resources.stages.line import Line, StageOutcome

BATCH = 200
"""Documents taken through the line together: long enough to fill the model's length groups."""
_POLL_S = 0.2
# Each round ends a document of some bytes; after three of them every copy goes its own way.
_WAKING_ROUNDS = 5

Progress = Callable[[str, int, int], None]


def run_keys(
    line: Line,
    keys: Sequence[DocumentKey],
    settings: Settings,
    *,
    actor: str,
    through_dagster: bool = True,
    should_stop: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _what, _done, _total: None,
) -> list[DocumentKey]:
    """Take registered documents through the line: in Dagster where one is set up, else here.

    Duplicates of them that come alive by that, since the first of the bytes changed or ended
    otherwise than in search, are taken through it too.

    Returns:
        Documents beside `keys` that were taken through the line.

    Raises:
        UnavailableError: database, disk, Dagster or the git export is away; what was finished is
            kept.
    """

    def run(wanted: Sequence[DocumentKey]) -> None:
        _run_once(
            line,
            wanted,
            settings,
            actor=actor,
            through_dagster=through_dagster,
            should_stop=should_stop,
            progress=progress,
        )

    concerned = list(dict.fromkeys([*keys, *line.repeating(keys)]))
    ran = set(keys)
    run(keys)
    for _ in range(_WAKING_ROUNDS):
        woken = [] if should_stop() else line.woken(concerned)
        if not woken:
            break
        run(woken)
        ran.update(woken)
    return [key for key in concerned[len(dict.fromkeys(keys)) :] if key in ran]


def _run_once(
    line: Line,
    keys: Sequence[DocumentKey],
    settings: Settings,
    *,
    actor: str,
    through_dagster: bool,
    should_stop: Callable[[], bool],
    progress: Progress,
) -> None:
    if through_dagster and dagster_home(settings) is not None:
        # A run costs seconds: what would do no work in it gets none.
        _run_in_dagster(line, line.with_work(keys), settings, actor, should_stop)
    else:
        _run_here(line, keys, should_stop, progress)
        commit_batch(settings, line.capabilities, keys)


def commit_batch(settings: Settings, caps: Capabilities, keys: Iterable[DocumentKey]) -> None:
    """Commit what a batch or a decision led to, where the git export is on.

    Raises:
        UnavailableError: git is missing or failed; nothing of the batch itself is undone.
    """
    if target := export_target(settings):
        from kb_resources.stages.export import export_batch

        export_batch(caps, target, keys)


def _run_here(
    line: Line, keys: Sequence[DocumentKey], should_stop: Callable[[], bool], progress: Progress
) -> None:
    ended: set[DocumentKey] = set()

    def seen(stage: AnyStage, key: DocumentKey, outcome: StageOutcome) -> None:
        if stage is Stage.SUPERSEDE or not (isinstance(outcome, StageReport) and outcome.goes_on):
            ended.add(key)
        progress(stage.value, len(ended), len(keys))

    for start in range(0, len(keys), BATCH):
        if should_stop():
            return
        line.run_all(keys[start : start + BATCH], should_stop=should_stop, seen=seen)


def dagster_home(settings: Settings) -> Path | None:
    """The configured Dagster instance's folder, or None where there is none."""
    home = Path(os.environ.get("DAGSTER_HOME") or settings.home / "dagster")
    return home if (home / "dagster.yaml").exists() else None


def _run_in_dagster(
    line: Line,
    keys: Sequence[DocumentKey],
    settings: Settings,
    actor: str,
    should_stop: Callable[[], bool],
) -> None:
    """One kb_batch run in a child process; the reading side never imports Dagster.

    The child is no member of the terminal's process group: a Ctrl-C reaches it through us alone,
    and Dagster then ends the run as canceled.
    """
    if not keys:
        return
    batch_id = line.new_batch(keys, actor=actor, cause="kb ingest")
    home = dagster_home(settings)
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            [sys.executable, "-m", "kb_assets.ingest", batch_id],
            env=os.environ | {"KB_HOME": str(settings.home), "DAGSTER_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        ) as child,
    ):
        try:
            code = _waited(child, should_stop)
        except BaseException:
            child.kill()
            raise
        said.seek(0)
        words = said.read().strip().splitlines()
    if code not in (0, 1) and not should_stop():
        raise UnavailableError(
            f"The Dagster run could not be made: {words[-1] if words else f'exit {code}'}",
            next_step="Look at the Dagster instance, or use --no-dagster.",
        )


def _waited(child: subprocess.Popen[bytes], should_stop: Callable[[], bool]) -> int:
    """Exit code of the child, which is told once that it should stop."""
    told = False
    while True:
        try:
            return child.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if should_stop() and not told:
                child.send_signal(signal.SIGUSR1)
                told = True
