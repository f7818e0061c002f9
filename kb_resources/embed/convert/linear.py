"""Linear layers with 8-bit activations scaled for each token and 7-bit weights for each output.

Belongs here: the arithmetic of one matrix product. What does not: the network around it.
Smoothing moves the scale of loud activation channels into the weights (SmoothQuant, Xiao et al.
2023, with alpha one half). Every value is made by correctly rounded operations (product, quotient,
root, rounding), so all machines build the same bytes. 7 bits keep two products of AVX2's
`vpmaddubsw` inside int16; scaling by token keeps a vector independent of its batch.
"""

from __future__ import annotations

import io
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from kb_resources.embed.convert.graph import CONTRIB, GraphBuilder
from kb_resources.embed.registry import package_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kb_resources.embed.convert.weights import Weights

    Floats = NDArray[np.float32]

Name = Literal["qkv", "ao", "fi", "fo"]

_WEIGHT_LIMIT = 63
_PEAKS_FILE = "data/e5_small_peaks.npz"
_FLOOR = np.float32(1e-5)


class LinearLayers:
    """Adds the linear layers of one encoder to a graph."""

    def __init__(self, graph: GraphBuilder, weights: Weights, shape: str, arithmetic: str) -> None:
        """Bind to a graph.

        Args:
            graph: what the nodes are added to.
            weights: where matrices and biases come from.
            shape: node output with the shape of `input_ids`.
            arithmetic: `w7a8` or `float32`.
        """
        self._graph = graph
        self._w = weights
        self._shape = shape
        self._divisors: dict[tuple[str, Name], Floats] = {}
        self._quantise = arithmetic == "w7a8"

    @cached_property
    def _peaks(self) -> dict[str, Floats]:
        """Largest magnitude of each input channel over calibration text, `(layers, channels)`."""
        with np.load(io.BytesIO(package_data(_PEAKS_FILE))) as stored:
            return {name: stored[name].astype(np.float32) for name in stored.files}

    def apply(self, state: str, layer: str, name: Name, *, bias: bool = True) -> str:
        """`state @ weights.T (+ bias)` over the last axis; returns the output's name."""
        if self._quantise:
            output = self._quantised(state, layer, name)
        else:
            matrix = self._matrix(layer, name)
            output = self._graph.node(
                "MatMul", [state, self._graph.constant(f"{layer}.{name}.w", matrix.T)]
            )
        if not bias:
            return output
        values = self._bias(layer, name)
        return self._graph.node("Add", [output, self._graph.constant(f"{layer}.{name}.b", values)])

    def _parts(self, name: Name) -> tuple[str, ...]:
        return ("q", "k", "v") if name == "qkv" else (name,)

    def _matrix(self, layer: str, name: Name) -> Floats:
        columns = self._w.feed_forward if name == "fo" else self._w.hidden
        return np.concatenate(
            [self._w.matrix(f"{layer}.{part}.w", columns) for part in self._parts(name)]
        )

    def _bias(self, layer: str, name: Name) -> Floats:
        bias = np.concatenate([self._w.float32(f"{layer}.{part}.b") for part in self._parts(name)])
        if self._quantise and name == "qkv":
            bias[-self._w.hidden :] /= self._smoothing(layer, "ao")
        return bias

    def _smoothing(self, layer: str, name: Name) -> Floats:
        """Divisor of each input channel; the matrix's columns take it back."""
        known = self._divisors.get((layer, name))
        if known is not None:
            return known
        peaks = self._peaks[name][int(layer[1:])]
        loudest = np.abs(self._matrix(layer, name)).max(axis=0)
        divisor: Floats = np.sqrt(np.maximum(peaks, _FLOOR) / np.maximum(loudest, _FLOOR))
        self._divisors[layer, name] = divisor
        return divisor

    def _quantised(self, state: str, layer: str, name: Name) -> str:
        tag, matrix = f"{layer}.{name}", self._matrix(layer, name)
        if name in self._peaks:
            smoothing = self._smoothing(layer, name)
            matrix = matrix * smoothing
            if name != "ao":  # there the values carry it: `v` was divided when it was made
                inverse = self._graph.constant(f"{tag}.smooth", 1 / smoothing)
                state = self._graph.node("Mul", [state, inverse])
        if name == "qkv":
            matrix[-self._w.hidden :] /= self._smoothing(layer, "ao")[:, None]
        scale = np.abs(matrix).max(axis=1) / np.float32(_WEIGHT_LIMIT)
        values = np.rint(matrix / scale[:, None]).clip(-_WEIGHT_LIMIT, _WEIGHT_LIMIT)
        return self._product(state, tag, values.astype(np.int8), scale)

    def _product(self, state: str, tag: str, values: NDArray[np.int8], scale: Floats) -> str:
        from onnx import TensorProto, helper

        graph, (outputs, inputs) = self._graph, values.shape
        last = graph.constant("last_axis", np.array([-1], np.int64))
        highest = graph.node("ReduceMax", [state, last], keepdims=1)
        lowest = graph.node("ReduceMin", [state, last], keepdims=1)
        peak = graph.node(
            "Max",
            [highest, graph.node("Neg", [lowest]), graph.constant("tiny", np.float32(1e-8))],
        )
        step = graph.node("Mul", [peak, graph.constant("per_127", np.float32(1 / 127))])
        flat_step = graph.node("Reshape", [step, last])
        zero_points = graph.node(
            "ConstantOfShape",
            [graph.node("Shape", [flat_step])],
            value=helper.make_tensor("zero_point", TensorProto.UINT8, [1], [128]),
        )
        rows = graph.constant(f"rows_of_{inputs}", np.array([-1, inputs], np.int64))
        flat = graph.node("Reshape", [state, rows])
        quantised = graph.node("QuantizeLinear", [flat, flat_step, zero_points], axis=0)
        product = graph.node(
            "MatMulIntegerToFloat",
            [
                quantised,
                graph.constant(f"{tag}.q", values.T),
                graph.constant("one", np.float32(1)),
                graph.constant(f"{tag}.scale", scale),
                graph.constant("zero_point", np.uint8(128)),
                graph.constant(f"{tag}.zero", np.zeros(outputs, np.int8)),
            ],
            domain=CONTRIB,
        )
        column = graph.constant("as_column", np.array([-1, 1], np.int64))
        product = graph.node("Mul", [product, graph.node("Reshape", [step, column])])
        width = graph.constant(f"width_{outputs}", np.array([outputs], np.int64))
        return graph.node("Reshape", [product, graph.node("Concat", [self._shape, width], axis=0)])
