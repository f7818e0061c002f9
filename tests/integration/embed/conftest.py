"""One prepared default model for the whole session, and a server that misbehaves on request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb_resources import embed

from .fake_server import FakeServer, running


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model cache with the default model built from the installed wheel, once for all workers."""
    folder = tmp_path_factory.mktemp("models")
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "models"  # prepare() takes turns
    embed.prepare(folder, embed.DEFAULT_MODEL)
    return folder


@pytest.fixture(scope="session")
def embedder(models_dir: Path) -> embed.OnnxEmbedder:
    """The default model, loaded."""
    loaded = embed.load(models_dir, embed.DEFAULT_MODEL, threads=2)
    assert isinstance(loaded, embed.OnnxEmbedder)
    return loaded


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A running server of this test's own."""
    with running(FakeServer()) as server:
        yield server
