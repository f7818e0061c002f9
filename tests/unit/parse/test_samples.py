"""What the warm parent of the parsers reads: texts of ours, and nothing is left running."""

from __future__ import annotations

import gc
import json
import socket
import subprocess
import sys

import pytest

from kb_resources.model import ParsedDocument
from kb_resources.parse.route import SAMPLES, parse_here
from kb_resources.parse.sandbox import nursery

SCRIPT = """
import json, sys, threading, importlib, os
from kb_resources.parse.route import PRELOADS, SAMPLES, parse_here
kind = sys.argv[1]
for module in PRELOADS.get(kind, ()):
    importlib.import_module(module)
parse_here(SAMPLES[kind], kind, "sample")
before = set(sys.modules)
parse_here(SAMPLES[kind].replace(b"One", b"Two"), kind, "other")
print(json.dumps({
    "later": sorted(set(sys.modules) - before),
    "threads": threading.active_count(),
    "tasks": len(os.listdir("/proc/self/task")),
}))
"""


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_is_a_document(kind: str) -> None:
    parsed = parse_here(SAMPLES[kind], kind, "sample")
    assert isinstance(parsed, ParsedDocument)
    assert parsed.blocks


@pytest.mark.parametrize("kind", SAMPLES)
def test_after_its_sample_a_type_imports_nothing_and_runs_no_thread(kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, kind], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"later": [], "threads": 1, "tasks": 1}


def test_a_sample_that_cannot_be_read_here_leaves_the_parent_to_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_given: object) -> None:
        raise ImportError("a library of this type is not installed")

    monkeypatch.setattr(nursery, "parse_here", missing)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        nursery.Nursery(ours, isolated=False)._warm_up("text/plain")
    gc.unfreeze()
