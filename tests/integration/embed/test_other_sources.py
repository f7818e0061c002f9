"""Models from a folder and from an endpoint, through the same `prepare` and `load`."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from kb_resources import embed
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.embed.remote import Endpoint, HttpTransport, RemoteEmbedder, Retry
from kb_resources.embed.sparse import SparseHead
from kb_resources.errors import InputError, IntegrityError, NotFound

from .fake_server import FakeServer

WORDS = ["<s>", "</s>", "<unk>", "one", "two", "three", "query:", "passage:"]
DIMENSIONS = 1024
TABLE = np.random.default_rng(3).normal(size=(len(WORDS), DIMENSIONS)).astype(np.float32)

HEAD = np.random.default_rng(4).normal(size=DIMENSIONS).astype(np.float16).astype(np.float32)
BIAS = np.float32(0.25)


def _export(
    folder: Path,
    *,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    output: str = "last_hidden_state",
    external: bool = False,
    more: tuple[str, ...] = (),
) -> Path:
    """An ONNX export whose token states are the rows of TABLE, and its tokenizer."""
    folder.mkdir()
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    last = "states"
    for name in inputs[1:]:  # every input takes part, without changing the states
        nodes += [
            helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", [f"{name}_f", "axis"], [f"{name}_u"]),
            helper.make_node("Mul", [f"{name}_u", "zero"], [f"{name}_z"]),
            helper.make_node("Add", [last, f"{name}_z"], [f"{name}_s"]),
        ]
        last = f"{name}_s"
    shape: list[Any] = ["batch", "sequence", DIMENSIONS]
    if output in ("sentence_embedding", "dense_vecs"):
        nodes.append(helper.make_node("ReduceMean", [last, "middle"], [output], keepdims=0))
        shape = ["batch", DIMENSIONS]
    else:
        nodes.append(helper.make_node("Identity", [last], [output]))
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    if "token_embeddings" in more:
        nodes.append(helper.make_node("Identity", [last], ["token_embeddings"]))
        outputs.append(helper.make_tensor_value_info("token_embeddings", TensorProto.FLOAT, None))
    if "sparse_vecs" in more:
        nodes += [
            helper.make_node("MatMul", [last, "head"], ["raw"]),
            helper.make_node("Add", ["raw", "bias"], ["moved"]),
            helper.make_node("Relu", ["moved"], ["sparse_vecs"]),
        ]
        outputs.append(helper.make_tensor_value_info("sparse_vecs", TensorProto.FLOAT, None))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"])
            for n in inputs
        ],
        outputs,
        [
            numpy_helper.from_array(TABLE, "table"),
            numpy_helper.from_array(np.array([2]), "axis"),
            numpy_helper.from_array(np.array([1]), "middle"),
            numpy_helper.from_array(np.float32(0), "zero"),
            numpy_helper.from_array(HEAD[:, None], "head"),
            numpy_helper.from_array(BIAS, "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(
        model, folder / "model.onnx", save_as_external_data=external, location="model.onnx_data"
    )
    tokenizer = Tokenizer(models.WordLevel({w: at for at, w in enumerate(WORDS)}, "<unk>"))
    tokenizer.add_special_tokens(WORDS[:3])
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def _mean(ids: list[int]) -> np.ndarray:
    return TABLE[ids].mean(axis=0)


@pytest.mark.requirement("O-37")
@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("bge-m3", ("input_ids", "attention_mask"), lambda ids: TABLE[ids[0]]),
        (
            "multilingual-e5-large",
            ("input_ids", "attention_mask", "token_type_ids"),
            lambda ids: _mean([ids[0], 7, *ids[1:]]),
        ),
        (
            "qwen3-embedding-0.6b",
            ("input_ids", "attention_mask", "position_ids"),
            lambda ids: TABLE[ids[-1]],
        ),
    ],
)
def test_an_export_is_pooled_as_its_model_card_says(
    tmp_path: Path,
    name: str,
    inputs: tuple[str, ...],
    expected: Callable[[list[int]], np.ndarray],
) -> None:
    export = _export(tmp_path / "export", inputs=inputs)
    embed.prepare(tmp_path / "models", name, source=export)
    loaded = embed.load(tmp_path / "models", name)
    vectors = loaded.embed(["one two", "three", "two one"], "passage")
    for vector, ids in zip(vectors, [[0, 3, 4, 1], [0, 5, 1], [0, 4, 3, 1]], strict=True):
        np.testing.assert_allclose(vector, _unit(expected(ids)), atol=1e-6)
    ready = embed.prepare(tmp_path / "models", name)  # needs no source once it is ready
    assert ready.identity == loaded.identity
    counter = embed.load_token_counter(tmp_path / "models", name)
    assert counter.count(["one two", "three"]) == [2, 1]
    assert counter.offsets("one  two") == [(0, 3), (5, 8)]
    assert embed.verify(tmp_path / "models", name).ok


def test_a_pooled_output_is_taken_as_it_is_and_data_files_come_along(tmp_path: Path) -> None:
    export = _export(tmp_path / "export", output="sentence_embedding", external=True)
    embed.prepare(tmp_path / "models", "bge-m3", source=export)
    vector = embed.load(tmp_path / "models", "bge-m3").embed(["one"], "query")[0]
    np.testing.assert_allclose(vector, _unit(_mean([0, 3, 1])), atol=1e-6)


def _torch_file(path: Path, *, kind: bytes = b"HalfStorage") -> Path:
    """The sparse head as PyTorch writes a state dict."""
    dtype = "<f4" if kind == b"FloatStorage" else "<f2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sparse_linear/data.pkl", b"\x80\x02ctorch\n" + kind + b"\nq\x00.")
        archive.writestr("sparse_linear/data/0", HEAD.astype(dtype).tobytes())
        archive.writestr("sparse_linear/data/1", np.array([BIAS]).astype(dtype).tobytes())
        archive.writestr("sparse_linear/version", b"3\n")
    return path


def _expected_weights(ids: list[int]) -> dict[int, float]:
    given = {at: float(np.maximum(TABLE[at] @ HEAD + BIAS, 0)) for at in ids}
    return {at: weight for at, weight in given.items() if weight > 0}


@pytest.mark.parametrize("more", ["sparse_vecs", "token_embeddings", ""])
def test_bge_m3_gives_dense_and_sparse_vectors_in_one_pass(tmp_path: Path, more: str) -> None:
    export = _export(tmp_path / "export", output="dense_vecs", more=(more,))
    if more == "token_embeddings":
        _torch_file(export / "sparse_linear.pt")
    embed.prepare(tmp_path / "models", "bge-m3", source=export)
    loaded = embed.load(tmp_path / "models", "bge-m3")
    assert isinstance(loaded, embed.OnnxEmbedder)
    found = loaded.embed_detailed(["one two three", "two two", "one <unk> four"], "passage")
    assert found is not None
    np.testing.assert_array_equal(found.vectors[1], loaded.embed(["two two"], "passage")[0])
    if not more:
        assert found.sparse == ()
        assert loaded.sparse_dimensions == 0
        return
    assert loaded.sparse_dimensions == 250_002
    for vector, ids in zip(found.sparse, [[3, 4, 5], [4], [3]], strict=True):
        got = dict(zip(vector.ids.tolist(), vector.weights.tolist(), strict=True))
        assert got == pytest.approx(_expected_weights(ids), rel=1e-4)


@pytest.mark.parametrize("kind", [b"HalfStorage", b"FloatStorage"])
def test_a_sparse_head_is_read_without_running_its_pickle(tmp_path: Path, kind: bytes) -> None:
    head = SparseHead.read(_torch_file(tmp_path / "head.pt", kind=kind), DIMENSIONS)
    np.testing.assert_array_equal(head.weights, HEAD)
    assert head.bias == BIAS


def test_a_file_that_is_no_sparse_head_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.pt"
    other.write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(IntegrityError):
        SparseHead.read(other, DIMENSIONS)
    with pytest.raises(IntegrityError):
        SparseHead.read(_torch_file(tmp_path / "head.pt"), DIMENSIONS // 2)
    with pytest.raises(IntegrityError):
        SparseHead.read(_torch_file(tmp_path / "i.pt", kind=b"IntStorage"), DIMENSIONS)
    with pytest.raises(IntegrityError):
        SparseHead.read(tmp_path / "none.pt", DIMENSIONS)


def test_other_files_make_another_identity(tmp_path: Path) -> None:
    first = embed.prepare(tmp_path / "m", "bge-m3", source=_export(tmp_path / "a"))
    same = embed.prepare(tmp_path / "m", "bge-m3", source=_export(tmp_path / "b"))
    other = embed.prepare(
        tmp_path / "m", "bge-m3", source=_export(tmp_path / "c", output="token_embeddings")
    )
    assert first.fingerprint == same.fingerprint != other.fingerprint


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    export = _export(tmp_path / "export")
    (export / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        embed.prepare(tmp_path / "models", "bge-m3", source=export)
    with pytest.raises(NotFound):
        embed.load(tmp_path / "models", "bge-m3")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"inputs": ("input_ids", "past_key_values.0.key")}, "past_key_values"),
        ({"output": "logits"}, "logits"),
    ],
)
def test_an_export_of_another_kind_is_refused(
    tmp_path: Path, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(InputError, match=what):
        embed.prepare(tmp_path / "models", "bge-m3", source=_export(tmp_path / "x", **options))


def test_an_export_of_another_length_is_refused(tmp_path: Path) -> None:
    export = _export(tmp_path / "export")
    with pytest.raises(IntegrityError, match="384"):
        embed.prepare(tmp_path / "models", embed.DEFAULT_MODEL, source=export)


@pytest.fixture
def quick() -> HttpTransport:
    return HttpTransport(timeout_s=20, retry=Retry(attempts=2, sleep=lambda _: None))


@pytest.mark.requirement("P-61")
def test_an_endpoint_is_prepared_loaded_and_refused_once_another_model_answers(
    fake: FakeServer, quick: HttpTransport, tmp_path: Path
) -> None:
    endpoint: Endpoint = fake.endpoint()
    name = "bge-m3"
    fake.vectors = lambda texts: HashingEmbedder(DIMENSIONS).embed(texts, "passage").tolist()
    manifest = embed.prepare(tmp_path, name, endpoint=endpoint, transport=quick)
    loaded = embed.load(tmp_path, name, transport=quick)
    assert loaded.model_id == manifest.identity.model_id
    assert loaded.embed(["text"], "passage").shape == (1, DIMENSIONS)
    assert embed.identity_of(tmp_path, name) == manifest.identity

    with pytest.raises(NotFound, match="tokenizer"):
        embed.load_token_counter(tmp_path, name)

    again = embed.prepare(tmp_path, name, endpoint=endpoint, transport=quick)
    assert again.fingerprint == manifest.fingerprint

    fake.salt = "another model"
    with pytest.raises(IntegrityError, match="another model"):
        embed.load(tmp_path, name, transport=quick)
    report = embed.verify(tmp_path, name, transport=quick)
    assert not report.ok
    assert "another model" in report.problem
    other = embed.prepare(tmp_path, name, endpoint=endpoint, transport=quick)
    assert other.fingerprint != manifest.fingerprint


@pytest.mark.requirement("P-61")
def test_an_endpoint_that_serves_the_same_weights_keeps_the_identity(
    fake: FakeServer,
    quick: HttpTransport,
    models_dir: Path,
    embedder: embed.OnnxEmbedder,
    tmp_path: Path,
) -> None:
    name = embed.DEFAULT_MODEL
    shutil.copytree(models_dir / name, tmp_path / name)
    prefix = embedder.identity.passage_prefix
    fake.vectors = lambda texts: embedder.embed(
        [text.removeprefix(f" {prefix}") for text in texts], "passage"
    ).tolist()
    same = embed.prepare(tmp_path, name, endpoint=fake.endpoint("tei"), transport=quick)
    assert same.identity == embedder.identity
    assert isinstance(embed.load(tmp_path, name, transport=quick), RemoteEmbedder)
    fake.salt = "another model"
    other = embed.prepare(tmp_path, name, endpoint=fake.endpoint("tei"), transport=quick)
    assert other.identity != embedder.identity
