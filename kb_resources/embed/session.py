"""One ONNX file in memory: which inputs it wants, which outputs are the vectors.

Belongs here: opening the runtime and one forward pass. What does not: texts, batches, threads.
See onnxruntime's "Thread management" and "Performance tuning" pages for the options.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kb_resources.embed.registry import Pooling
from kb_resources.errors import InputError, IntegrityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kb_resources.embed.sparse import SparseHead

_POOLED_NAMES = ("sentence_embedding", "dense_vecs", "dense", "dense_embeddings", "text_embeds")
_TOKEN_NAMES = ("last_hidden_state", "token_embeddings", "hidden_states")
_SPARSE_NAMES = ("sparse_vecs", "sparse", "sparse_weights", "token_weights")
_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})


@dataclass(frozen=True, slots=True)
class Outputs:
    """What one forward pass gives.

    Attributes:
        vectors: `(batch, dimensions)` float32, L2-normalised.
        weights: `(batch, length)` float32, a weight for each token; None for dense models.
    """

    vectors: NDArray[np.float32]
    weights: NDArray[np.float32] | None = None


def open_session(path: Path) -> Any:
    """An ONNX file in onnxruntime, on the caller's thread alone.

    Raises:
        IntegrityError: the runtime can't load the file.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_mem_pattern = False  # shapes change with every batch
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no base class of its own
        raise IntegrityError(
            f"onnxruntime can't load {path}: {error}.",
            next_step="Run `kb models verify`, then `kb models prepare --force`.",
        ) from error


class OnnxSession:
    """A loaded graph. `run` may be called from several threads; each call uses its own thread."""

    def __init__(
        self, path: Path, pooling: Pooling, *, sparse_head: SparseHead | None = None
    ) -> None:
        """Load the graph; call it after forking, not before.

        Args:
            path: the ONNX file.
            pooling: how token states become one vector, where the graph does not pool.
            sparse_head: makes token weights of token states, where the graph does not.

        Raises:
            IntegrityError: the runtime can't load the file.
            InputError: the graph has inputs or outputs of an unknown kind.
        """
        self._session: Any = open_session(path)
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        unknown = set(self._inputs) - _KNOWN_INPUTS
        if unknown:
            raise InputError(
                f"{path} wants the inputs {sorted(unknown)}, which this project does not know.",
                next_step="Export the model for feature extraction, without a cache of past keys.",
            )
        self._output, self._pooling = self._choose_output(path, pooling)
        self._weights, self._head = self._choose_weights(sparse_head)

    def _choose_output(self, path: Path, pooling: Pooling) -> tuple[str, Pooling | None]:
        names = [entry.name for entry in self._session.get_outputs()]
        for name in _POOLED_NAMES:
            if name in names:
                return name, None
        for name in _TOKEN_NAMES:
            if name in names:
                return name, pooling
        raise InputError(
            f"{path} gives the outputs {names}; none is a sentence vector.",
            next_step=f"Name an output one of {', '.join(_POOLED_NAMES + _TOKEN_NAMES)}.",
        )

    def _choose_weights(self, head: SparseHead | None) -> tuple[str | None, SparseHead | None]:
        names = [entry.name for entry in self._session.get_outputs()]
        made = next((name for name in _SPARSE_NAMES if name in names), None)
        if made is not None or head is None:
            return made, None
        states = next((name for name in _TOKEN_NAMES if name in names), None)
        return states, head if states else None

    @property
    def sparse(self) -> bool:
        """Whether `run` gives token weights."""
        return self._weights is not None

    def run(self, ids: NDArray[np.int64]) -> Outputs:
        """Vectors, and token weights where the model has them, of equally long inputs.

        Args:
            ids: `(batch, length)` int64, no padding.
        """
        feeds = {}
        for name in self._inputs:
            if name == "input_ids":
                feeds[name] = ids
            elif name == "attention_mask":
                feeds[name] = np.ones_like(ids)
            elif name == "token_type_ids":
                feeds[name] = np.zeros_like(ids)
            else:
                feeds[name] = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        wanted = [self._output, *([self._weights] if self._weights else [])]
        values, *more = (
            found.astype(np.float32, copy=False) for found in self._session.run(wanted, feeds)
        )
        if self._pooling == "cls":
            values = values[:, 0]
        elif self._pooling == "last":
            values = values[:, -1]
        elif self._pooling == "mean":
            values = values.mean(axis=1)
        norms = np.linalg.norm(values, axis=-1, keepdims=True)
        # A zero vector stays zero and is refused later; dividing would hide it as NaN.
        unit: NDArray[np.float32] = np.divide(
            values, norms, out=np.zeros_like(values), where=norms > 0
        )
        if not more:
            return Outputs(unit)
        weights = self._head(more[0]) if self._head else more[0]
        return Outputs(unit, weights.reshape(weights.shape[:2]))
