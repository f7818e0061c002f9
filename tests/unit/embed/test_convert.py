"""The graph against plain NumPy, on small random weights in the wheel's file layout."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from kb_resources.embed.convert.encoder import encoder_files
from kb_resources.embed.convert.form import Form
from kb_resources.embed.convert.reference import ReferenceEncoder
from kb_resources.embed.convert.weights import Weights
from kb_resources.embed.session import OnnxSession
from kb_resources.errors import IntegrityError

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 4, 128, 16
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁w{at}" for at in range(28))]


def write_weights(path: Path, seed: int = 7) -> Path:
    """Random weights as an E5S1 file."""
    random = np.random.default_rng(seed)
    blob = "".join(PIECES).encode()
    offsets = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)]).astype("<u4")
    head = b"E5S1" + struct.pack(
        "<I7ifi5iQ",
        *(1, HIDDEN, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 1),
        *(1e-12, 32, len(PIECES), 0, 2, 1, 3, len(blob)),
    )
    head += offsets.tobytes() + np.zeros(len(PIECES), "<f4").tobytes() + blob
    head += struct.pack("<iI", 1, 13) + struct.pack("<IBII", 0xA0, 2, 0x20, 0x20)

    def quantised(rows: int, columns: int) -> bytes:
        blocks = np.zeros((rows * columns // 32, 18), np.uint8)
        scales = random.uniform(0.005, 0.02, (len(blocks), 1)).astype("<f2")
        blocks[:, :2] = scales.view(np.uint8).reshape(-1, 2)
        blocks[:, 2:] = random.integers(0, 256, (len(blocks), 16))
        return blocks.tobytes()

    def floats(count: int, around: float = 0.0) -> bytes:
        return (around + random.normal(0, 0.1, count)).astype("<f4").tobytes()

    tensors = {
        "emb.word": quantised(len(PIECES), HIDDEN),
        "emb.pos": floats(POSITIONS * HIDDEN),
        "emb.type": floats(HIDDEN),
        "emb.ln.w": floats(HIDDEN, 1.0),
        "emb.ln.b": floats(HIDDEN),
    }
    for layer in (f"l{at}" for at in range(LAYERS)):
        for part in ("q", "k", "v", "ao"):
            tensors[f"{layer}.{part}.w"] = quantised(HIDDEN, HIDDEN)
            tensors[f"{layer}.{part}.b"] = floats(HIDDEN)
        tensors |= {
            f"{layer}.fi.w": quantised(INNER, HIDDEN),
            f"{layer}.fi.b": floats(INNER),
            f"{layer}.fo.w": quantised(HIDDEN, INNER),
            f"{layer}.fo.b": floats(HIDDEN),
        }
        for norm in ("aln", "oln"):
            tensors |= {f"{layer}.{norm}.w": floats(HIDDEN, 1.0)}
            tensors |= {f"{layer}.{norm}.b": floats(HIDDEN)}
    entry_bytes = sum(2 + len(name) + 5 + 16 for name in tensors)
    at = len(head) + 4 + entry_bytes
    directory = struct.pack("<i", len(tensors))
    for name, data in tensors.items():
        encoded = name.encode()
        directory += struct.pack("<H", len(encoded)) + encoded + struct.pack("<BI", 0, 0)
        directory += struct.pack("<QQ", at, len(data))
        at += len(data)
    path.write_bytes(head + directory + b"".join(tensors.values()))
    return path


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    return Weights(write_weights(tmp_path_factory.mktemp("weights") / "tiny.bin"))


def _session(folder: Path, weights: Weights, form: Form) -> OnnxSession:
    for name, data in encoder_files(weights, form).items():
        (folder / name).write_bytes(data)
    return OnnxSession(folder / "model.onnx", "mean")


def test_the_reader_finds_what_the_file_says(weights: Weights) -> None:
    assert (weights.hidden, weights.layers, weights.heads) == (HIDDEN, LAYERS, HEADS)
    assert weights.pieces == PIECES
    assert (weights.bos, weights.eos, weights.pad, weights.unk) == (0, 2, 1, 3)
    matrix = weights.quantised("l1.fi.w", HIDDEN)
    assert matrix.values.shape == (INNER, HIDDEN)
    assert matrix.values.max() == 15
    block = matrix.float32()[5, 32:64]
    expected = (matrix.values[5, 32:64].astype(float) - 8) * float(matrix.scales[5, 1])
    np.testing.assert_allclose(block, expected, rtol=1e-6)


@pytest.mark.parametrize("mask", [False, True])
def test_the_float32_graph_calculates_what_the_formulas_say(
    weights: Weights, tmp_path: Path, mask: bool
) -> None:
    session = _session(tmp_path, weights, Form("float32", mask=mask))
    ids = np.random.default_rng(1).integers(0, len(PIECES), (3, 9))
    reference = ReferenceEncoder(weights)
    expected = np.stack([reference.embed(row.tolist()) for row in ids])
    # The embedding table's scales are half precision, as in the file: products round once more.
    np.testing.assert_allclose(session.run(ids).vectors, expected, atol=2e-3)
    assert float((session.run(ids).vectors * expected).sum(axis=1).min()) > 0.99999


def test_builds_are_the_same_bytes(weights: Weights) -> None:
    assert encoder_files(weights, Form("float32")) == encoder_files(weights, Form("float32"))


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(IntegrityError):
        Weights(path)


def test_a_damaged_graph_is_refused(weights: Weights, tmp_path: Path) -> None:
    _session(tmp_path, weights, Form("float32"))
    model = tmp_path / "model.onnx"
    model.write_bytes(model.read_bytes()[:200])
    with pytest.raises(IntegrityError):
        OnnxSession(model, "mean")
