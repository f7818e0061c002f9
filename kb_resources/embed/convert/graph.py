"""Writes an ONNX graph node by node, its weights in a file beside it.

Belongs here: names, constants, the two files. What does not: any model's shape (`encoder`).
Weights stand in a second file, page aligned, so that the runtime maps them instead of copying
them (onnx, "External Data").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

WEIGHTS_FILE = "weights.bin"
CONTRIB = "com.microsoft"
_OPSET, _IR_VERSION = 21, 10
_ALIGNMENT = 4096
_INLINE_BYTES = 1024


def pack_nibbles(values: NDArray[np.integer[Any]]) -> bytes:
    """4-bit values of each row in pairs, the first in the low half."""
    return (values[:, 0::2] | (values[:, 1::2] << 4)).astype(np.uint8).tobytes()


@dataclass(slots=True)
class GraphBuilder:
    """Collects nodes and constants; names are numbered, so a build is reproducible."""

    nodes: list[Any] = field(default_factory=list)
    _tensors: dict[str, Any] = field(default_factory=dict)
    _weights: bytearray = field(default_factory=bytearray)

    def node(
        self, operator: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any
    ) -> str:
        """Add an operator with one output; returns the output's name."""
        return self.nodes_out(operator, inputs, 1, domain=domain, **attributes)[0]

    def nodes_out(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: int,
        *,
        domain: str = "",
        **attributes: Any,
    ) -> list[str]:
        """Add an operator with several outputs; returns their names."""
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        names = [f"{name}_{index}" for index in range(outputs)]
        self.nodes.append(
            helper.make_node(operator, inputs, names, name=name, domain=domain, **attributes)
        )
        return names

    def constant(self, name: str, value: ArrayLike) -> str:
        """Add a constant once; a name used before keeps its first value."""
        if name not in self._tensors:
            from onnx import helper

            array = np.asarray(value)
            self._add(
                name,
                helper.np_dtype_to_tensor_dtype(array.dtype),
                array.shape,
                np.ascontiguousarray(array).tobytes(),
            )
        return name

    def constant_int4(self, name: str, values: NDArray[np.uint8]) -> str:
        """Add a matrix of 4-bit values with zero point 8 as a signed INT4 constant."""
        from onnx import TensorProto

        self._add(name, TensorProto.INT4, values.shape, pack_nibbles((values + 8) & 15))
        return name

    def _add(self, name: str, dtype: int, shape: Sequence[int], data: bytes) -> None:
        from onnx import TensorProto

        tensor = TensorProto(name=name, data_type=dtype, dims=shape)
        if len(data) < _INLINE_BYTES:
            tensor.raw_data = data
        else:
            self._weights.extend(bytes(-len(self._weights) % _ALIGNMENT))
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (
                ("location", WEIGHTS_FILE),
                ("offset", str(len(self._weights))),
                ("length", str(len(data))),
            ):
                tensor.external_data.add(key=key, value=value)
            self._weights.extend(data)
        self._tensors[name] = tensor

    def rename_last_output(self, name: str) -> None:
        """Give the newest node's output its public name."""
        self.nodes[-1].output[0] = name

    def files(
        self,
        graph_name: str,
        inputs: Mapping[str, Sequence[str | int]],
        outputs: Mapping[str, Sequence[str | int]],
    ) -> dict[str, bytes]:
        """The model as file name → content.

        Args:
            graph_name: shown by viewers.
            inputs: int64 inputs and their axes.
            outputs: float32 outputs and their axes.
        """
        from onnx import TensorProto, helper

        graph = helper.make_graph(
            self.nodes,
            graph_name,
            [helper.make_tensor_value_info(n, TensorProto.INT64, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            list(self._tensors.values()),
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        serialised = model.SerializeToString(deterministic=True)
        return {"model.onnx": serialised, WEIGHTS_FILE: bytes(self._weights)}
