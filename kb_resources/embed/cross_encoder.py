"""Reads a question and a passage together and says how well they fit: a cross-encoder in ONNX.

Belongs here: loading one and scoring pairs. What does not: which hits are scored, waiting, falling
back (`retrieve.reranking`). The form is that of sequence classifiers with one label, such as
bge-reranker-v2-m3 (Nogueira and Cho, "Passage Re-ranking with BERT", 2019). None is packaged
anywhere, so nothing is reranked unless a folder is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kb_resources.embed.batching import plan_batches
from kb_resources.embed.identity import fingerprint
from kb_resources.embed.manifest import TOKENIZER_FILE, FileFacts
from kb_resources.embed.session import open_session
from kb_resources.errors import InputError, IntegrityError, UnavailableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_FILE = "model.onnx"
MAX_TOKENS = 512
_QUESTION_CHARS = 1000
_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_OUTPUTS = ("logits", "scores", "score")


class CrossEncoder:
    """A loaded cross-encoder; `scores` may be called from several threads."""

    def __init__(self, session: Any, tokenizer: Any, name: str, *, path: Path) -> None:
        """Bind a loaded graph and tokenizer; see `open`."""
        self.name = name
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = [entry.name for entry in session.get_inputs()]
        if unknown := set(self._inputs) - _KNOWN_INPUTS:
            raise InputError(
                f"{path} wants the inputs {sorted(unknown)}, which this project does not know.",
                next_step="Export the model for sequence classification.",
            )
        given = [entry.name for entry in session.get_outputs()]
        found = next((output for output in _OUTPUTS if output in given), None)
        if found is None:
            raise InputError(
                f"{path} gives the outputs {given}; none is a score.",
                next_step=f"Name one of them {' or '.join(_OUTPUTS)}.",
            )
        self._output = found

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Load `model.onnx` with its data files and `tokenizer.json`.

        Raises:
            UnavailableError: the folder lacks one of them.
            IntegrityError: a file can't be loaded.
            InputError: the graph is no cross-encoder.
        """
        for name in (MODEL_FILE, TOKENIZER_FILE):
            if not (folder / name).is_file():
                raise UnavailableError(
                    f"{folder} holds no {name}.",
                    next_step="Set KB_RERANKER to a folder with an ONNX export, or unset it.",
                    code="model_missing",
                )
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # tokenizers has no base class of its own
            raise IntegrityError(
                f"{folder / TOKENIZER_FILE} can't be read: {error}.",
                next_step="Take the file from where the model comes from.",
            ) from error
        tokenizer.enable_truncation(MAX_TOKENS, strategy="longest_first")
        tokenizer.no_padding()
        facts = {name: FileFacts.of(folder / name).sha256 for name in (MODEL_FILE, TOKENIZER_FILE)}
        name = f"{folder.name}@{fingerprint(files=facts)}"
        return cls(open_session(folder / MODEL_FILE), tokenizer, name, path=folder / MODEL_FILE)

    def scores(
        self,
        question: str,
        passages: Sequence[str],
        *,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> NDArray[np.float32] | None:
        """How well each passage answers the question.

        Args:
            question: cut to 1,000 code points.
            passages: what is cut to the model's limit together with the question.
            should_stop: asked between batches; True ends the call.

        Returns:
            `(n,)` float32 logits, in the order of the passages; None when it was stopped.

        Raises:
            IntegrityError: the model gave something else than one finite number for each pair.
        """
        pairs = [(question[:_QUESTION_CHARS], passage) for passage in passages]
        encoded = self._tokenizer.encode_batch(pairs)
        logits = np.empty(len(pairs), np.float32)
        for batch in plan_batches([len(pair.ids) for pair in encoded]):
            if should_stop():
                return None
            logits[batch] = self._run([encoded[at] for at in batch])
        return logits

    def _run(self, batch: Sequence[Any]) -> NDArray[np.float32]:
        """Logits of equally long pairs."""
        values = {
            "input_ids": [pair.ids for pair in batch],
            "attention_mask": [pair.attention_mask for pair in batch],
            "token_type_ids": [pair.type_ids for pair in batch],
        }
        feeds = {name: np.array(values[name], np.int64) for name in self._inputs}
        (found,) = self._session.run([self._output], feeds)
        logits: NDArray[np.float32] = np.asarray(found, np.float32).reshape(len(batch), -1)
        if logits.shape[1] == 2:  # two classes, the second one: it fits
            logits = logits[:, 1:] - logits[:, :1]
        if logits.shape != (len(batch), 1) or not np.isfinite(logits).all():
            raise IntegrityError(
                f"{self.name} gave no finite number for each pair.",
                next_step="Unset KB_RERANKER, or name another model.",
            )
        return logits[:, 0]
