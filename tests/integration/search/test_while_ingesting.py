"""Searches answer while an ingestion is in the middle of its work, and need no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from .conftest import TinyEmbedder, World

ROOT = Path(__file__).parents[3]
LIMIT_S = 240


class Held(TinyEmbedder):
    """Stands still in the middle of embedding passages until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], kind: str) -> NDArray[np.float32]:
        if kind == "passage" and any("slow" in text for text in texts):
            self.reached.set()
            assert self.go.wait(LIMIT_S)
        return super().embed(texts, kind)


@pytest.mark.requirement("P-16", "P-73")
def test_searches_do_not_wait_for_an_ingestion_that_holds_its_transaction(world: World) -> None:
    world.embedder = held = Held()
    world.publish("before", ["leave is thirty days"])
    row, chunks = world.stage("slow", ["leave is slow to come"])
    ingesting = threading.Thread(
        target=lambda: (world.embed(row, chunks), world.put(row, chunks)), daemon=True
    )
    ingesting.start()
    try:
        assert held.reached.wait(LIMIT_S)  # inside the transaction that stages its vectors
        for mode in ("hybrid", "text", "vector"):
            for _ in range(20):
                assert world.found("leave", mode=mode) == ["before"]
        with world.pipeline() as conn:  # and not while it publishes, either
            world.embedder = TinyEmbedder()
            other, others = world.stage("other", ["leave of absence"])
            world.embed(other, others)
            world.put(other, others, conn=conn)
            assert world.found("leave") == ["before"]
        assert sorted(world.found("leave")) == ["before", "other"]
    finally:
        held.go.set()
        ingesting.join(LIMIT_S)
    assert not ingesting.is_alive()
    assert sorted(world.found("leave")) == ["before", "other", "slow"]


PROGRAM = """
import json, sys
from pathlib import Path
from kb_resources import embed
models = Path(sys.argv[1])
embed.prepare(models, embed.DEFAULT_MODEL)
model = embed.load(models, embed.DEFAULT_MODEL)
shape = model.embed(["thirty days"], "passage").shape
names = sorted(name.partition(".")[0] for name in sys.modules)
with open("/proc/self/maps") as file:
    libraries = sorted({line.split()[-1] for line in file if ".so" in line})
print(json.dumps([shape, names, libraries, model._session._session.get_providers()]))
"""


@pytest.mark.requirement("P-75")
def test_embedding_loads_nothing_of_a_gpu() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT / ".kb" / "models")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    shape, modules, libraries, providers = json.loads(done.stdout.splitlines()[-1])
    assert shape == [1, 384]
    assert providers == ["CPUExecutionProvider"]
    assert not {"torch", "tensorflow", "jax", "cupy", "triton", "pynvml"} & set(modules)
    assert not [name for name in libraries if "cuda" in name or "nvidia" in name]
