"""Runs one stage over documents in a process that kills itself at a chosen moment.

Usage: `python victim.py`, settings in the environment; a JSON object a line on standard input:
`{"scope", "document_ids", "stage", "at"}`. It answers `killed`, `done N` (N calls were made, so
that moments can be chosen) or `failed CODE`. `at` counts the calls that the stage's thread makes,
of Python and of C functions alike: a moment lies before each statement, each file operation, each
step of a computation. The process that dies is forked from one that has modules and model loaded.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from types import FrameType

from kb_resources import embed
from kb_resources.compose import open_line
from kb_resources.model import DocumentKey, Stage
from kb_resources.settings import load_settings


class Fuse:
    """Counts calls; at the given one the process kills itself as `kill -9` does."""

    def __init__(self, at: int | None) -> None:
        self._at = at
        self.calls = 0

    def __call__(self, _frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls == self._at:
                os.kill(os.getpid(), signal.SIGKILL)


def run(scope: str, document_ids: list[str], stage: str, at: int | None) -> int:
    """The stage under a fuse; returns the number of its calls."""
    fuse = Fuse(at)
    with open_line(load_settings(), actor="victim") as line:
        keys = [DocumentKey(scope, document_id) for document_id in document_ids]
        outcomes = line.run_stage(Stage(stage), keys)
        sys.setprofile(fuse)
        try:
            found = list(outcomes)
        finally:
            sys.setprofile(None)
    for _, outcome in found:
        if isinstance(outcome, Exception):
            raise outcome
    return fuse.calls


def main() -> None:
    """Fork a victim for each line of standard input."""
    import importlib

    settings = load_settings()
    loaded = embed.load(settings.models_path, settings.model, threads=1)
    embed.load = lambda *_arguments, **_options: loaded  # one thread: nothing a fork could lose
    for stage in Stage:
        importlib.import_module(f"kb_resources.stages.{stage.value}")
    print("ready", flush=True)
    for line in sys.stdin:
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                os.write(writer, f"done {run(**json.loads(line))}".encode())
            except Exception as error:  # noqa: BLE001 - the test is told
                os.write(writer, f"failed {type(error).__name__}: {error}".encode()[:2000])
            finally:
                os._exit(0)
        os.close(writer)
        _, status = os.waitpid(pid, 0)
        said = os.read(reader, 4000).decode()
        os.close(reader)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print("killed" if killed else said, flush=True)


if __name__ == "__main__":
    main()
