"""The runner that the peers' guides name, with our model's weights: FastEmbed over plain ONNX.

Belongs here: writing the model as such a runner wants it, and running it. What does not: what is
compared with it (`ingest_peers.py`), our runner beside naive loops (`embed.py`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODEL = "bench"


def write_model(folder: Path, models: Path, form: str) -> None:
    """A folder as hubs publish one: graph with an attention mask, weights, tokenizer, settings.

    Args:
        folder: is made.
        models: where our prepared model lies, of whose tokenizer this is a copy.
        form: `float32`, or `int8` as ONNX Runtime's own dynamic quantisation makes it of that.
    """
    from kb_resources import embed
    from kb_resources.embed.convert.encoder import encoder_files
    from kb_resources.embed.convert.form import Form
    from kb_resources.embed.convert.weights import Weights
    from kb_resources.embed.sources import packaged_weights

    weights = Weights(packaged_weights(embed.find_model(embed.DEFAULT_MODEL).package or ""))
    folder.mkdir()
    for name, data in encoder_files(weights, Form("float32", mask=True)).items():
        (folder / name).write_bytes(data)
    if form == "int8":
        quantise(folder / "model.onnx")
    shutil.copy(models / embed.DEFAULT_MODEL / "tokenizer.json", folder)
    for name, values in {
        "config.json": {"pad_token_id": 1},
        "tokenizer_config.json": {"model_max_length": 512, "pad_token": "<pad>"},
        "special_tokens_map.json": {},
    }.items():
        (folder / name).write_text(json.dumps(values))


def quantise(model: Path) -> None:
    """Weights of linear layers to int8, activations when it runs."""
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic

    whole = model.with_name("whole.onnx")
    quantize_dynamic(
        str(model),
        str(whole),
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},
    )
    whole.replace(model)


class FastEmbed:
    """FastEmbed on one thread with its own batches; E5's prefix is put before each passage."""

    def __init__(self, folder: Path) -> None:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        TextEmbedding.add_custom_model(
            model=MODEL,
            pooling=PoolingType.DISABLED,  # the graph pools
            normalization=False,
            sources=ModelSource(hf=MODEL),
            dim=384,
            model_file="model.onnx",
        )
        self._model = TextEmbedding(MODEL, specific_model_path=str(folder), threads=1)

    def embed(self, texts: Sequence[str], _kind: str) -> Any:
        """float32 `(len(texts), 384)`, L2-normalised."""
        import numpy as np

        return np.stack(list(self._model.embed([f"passage: {text}" for text in texts])))
