"""The E5 encoder as an ONNX graph: embedding table, layers, mean pooling, L2 norm.

Belongs here: the graph's shape in its three forms (`form`). What does not: the linear layers'
arithmetic (`linear`) and files. The architecture is BERT's (Devlin et al. 2019) with post layer
norm.
"""

from __future__ import annotations

import numpy as np

from kb_resources.embed.convert.form import Form
from kb_resources.embed.convert.graph import CONTRIB, GraphBuilder
from kb_resources.embed.convert.linear import LinearLayers
from kb_resources.embed.convert.weights import BLOCK, Weights


def encoder_files(weights: Weights, form: Form = Form()) -> dict[str, bytes]:  # noqa: B008
    """The model as file name → content, the same bytes on every machine.

    The graph takes `input_ids` `(batch, sequence)` int64 (and `attention_mask` in masked forms)
    and gives `sentence_embedding` `(batch, hidden)` float32, L2-normalised.
    """
    encoder = _Encoder(weights, form)
    encoder.build()
    axes = ["batch", "sequence"]
    inputs = {"input_ids": axes} | ({"attention_mask": axes} if form.mask else {})
    return encoder.graph.files(
        "multilingual-e5-small", inputs, {"sentence_embedding": ["batch", weights.hidden]}
    )


class _Encoder:
    def __init__(self, weights: Weights, form: Form) -> None:
        self._w = weights
        self._form = form
        self.graph = GraphBuilder()

    def build(self) -> None:
        graph = self.graph
        shape = graph.node("Shape", ["input_ids"])
        state = self._layer_norm(self._embeddings(), "emb.ln")
        linear = LinearLayers(graph, self._w, shape, self._form.arithmetic)
        mask_inputs = []
        if self._form.mask:
            from onnx import TensorProto

            mask_inputs = ["", graph.node("Cast", ["attention_mask"], to=TensorProto.INT32)]
        for layer in range(self._w.layers):
            name = f"l{layer}"
            mixed = linear.apply(state, name, "qkv")
            query, key, value = graph.nodes_out("Split", [mixed], 3, axis=-1, num_outputs=3)
            attended = graph.node(
                "MultiHeadAttention",
                [query, key, value, *mask_inputs],
                domain=CONTRIB,
                num_heads=self._w.heads,
            )
            state = self._residual(state, linear.apply(attended, name, "ao"), f"{name}.aln")
            inner = linear.apply(state, name, "fi", bias=False)
            bias = graph.constant(f"{name}.fi.b", self._w.float32(f"{name}.fi.b"))
            inner = graph.node("BiasGelu", [inner, bias], domain=CONTRIB)
            state = self._residual(state, linear.apply(inner, name, "fo"), f"{name}.oln")
        graph.node("LpNormalization", [self._pool(state)], axis=-1, p=2)
        graph.rename_last_output("sentence_embedding")

    def _embeddings(self) -> str:
        from onnx import TensorProto

        graph, hidden = self.graph, self._w.hidden
        table = self._w.quantised("emb.word", hidden)
        rows = len(self._w.pieces)
        word = graph.node(
            "GatherBlockQuantized",
            [
                graph.constant_int4("emb.word", table.values[:rows]),
                "input_ids",
                graph.constant("emb.word.scale", table.scales[:rows]),
            ],
            domain=CONTRIB,
            gather_axis=0,
            quantize_axis=1,
            block_size=BLOCK,
        )
        word = graph.node("Cast", [word], to=TensorProto.FLOAT)
        token_type = self._w.float32("emb.type").reshape(-1, hidden)[0]
        positions = self._w.float32("emb.pos").reshape(-1, hidden) + token_type
        zero = graph.constant("first", np.array([0], np.int64))
        length = graph.node("Shape", ["input_ids"], start=1, end=2)
        place = graph.node("Slice", [graph.constant("emb.pos", positions), zero, length, zero])
        return graph.node("Add", [word, place])

    def _layer_norm(self, state: str, name: str) -> str:
        gain = self.graph.constant(f"{name}.w", self._w.float32(f"{name}.w"))
        bias = self.graph.constant(f"{name}.b", self._w.float32(f"{name}.b"))
        return self.graph.node(
            "LayerNormalization", [state, gain, bias], axis=-1, epsilon=self._w.epsilon
        )

    def _residual(self, state: str, change: str, norm: str) -> str:
        # Kept as Add and LayerNormalization: the fused SkipLayerNormalization is slower here.
        return self._layer_norm(self.graph.node("Add", [change, state]), norm)

    def _pool(self, state: str) -> str:
        graph = self.graph
        axis = graph.constant("token_axis", np.array([1], np.int64))
        if not self._form.mask:
            return graph.node("ReduceMean", [state, axis], keepdims=0)
        from onnx import TensorProto

        mask = graph.node("Cast", ["attention_mask"], to=TensorProto.FLOAT)
        summed = graph.node("MatMul", [graph.node("Unsqueeze", [mask, axis]), state])
        return graph.node("Squeeze", [summed, axis])  # the norm makes the divisor moot
