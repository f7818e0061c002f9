"""Texts to what the model reads: prefix, special tokens, the model's limit.

Belongs here: one tokenizer for counting (chunk) and for embedding, so that both agree. What does
not: the segmentation itself (`unigram`, or the library `tokenizers` for other models' files), the
model. Special tokens frame a text as in BERT (Devlin et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kb_resources.embed.identity import Kind, ModelIdentity
from kb_resources.embed.manifest import TOKENIZER_FILE
from kb_resources.embed.unigram import VOCABULARY_FILE, UnigramTokenizer, Vocabulary
from kb_resources.errors import IntegrityError


class Segmenter(Protocol):
    """Cuts text into tokens; knows no prefix and no limit."""

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """Special tokens before and after every text."""
        ...

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that frame a text or stand for what the vocabulary lacks."""
        ...

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        ...

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open code-point span of each token in `text`, in order."""
        ...


class HubSegmenter:
    """Segments by a `tokenizer.json` as model hubs carry it; large in memory."""

    def __init__(self, path: Path) -> None:
        """Load the file.

        Raises:
            IntegrityError: the file can't be read.
        """
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises bare Exception
            raise IntegrityError(
                f"{path} can't be read as a tokenizer: {error}.",
                next_step="Run `kb models prepare --force`.",
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # `</s>` in a document is plain text
        framed = list(self._tokenizer.encode("x").ids)
        plain = list(self._tokenizer.encode("x", add_special_tokens=False).ids)
        before = next(at for at in range(len(framed)) if framed[at : at + len(plain)] == plain)
        added = self._tokenizer.get_added_tokens_decoder().items()
        self.special_ids = frozenset(at for at, token in added if token.special)
        self.frame: tuple[list[int], list[int]] = (framed[:before], framed[before + len(plain) :])

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [list(encoding.ids) for encoding in encoded]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open code-point span of each token in `text`, in order."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of a list of texts.

    Attributes:
        ids: ids of each text with prefix and special tokens, cut to the model's limit.
        truncated: positions of the texts that were cut.
    """

    ids: list[list[int]]
    truncated: tuple[int, ...]


class ModelTokenizer:
    """Implements `TokenCounter`, and `encode` for the embedder. Safe to share between threads."""

    def __init__(self, segmenter: Segmenter, identity: ModelIdentity) -> None:
        """Bind a segmenter to a model's prefixes and limit."""
        self._segmenter = segmenter
        self._identity = identity
        before, after = segmenter.frame
        prefix = segmenter.ids([identity.passage_prefix])[0]
        self._overhead = len(before) + len(prefix) + len(after)

    @classmethod
    def open(cls, folder: Path, identity: ModelIdentity) -> ModelTokenizer:
        """Load the tokenizer of a prepared model's folder, the small form where there is one.

        Raises:
            IntegrityError: a file is missing or damaged.
        """
        if (folder / VOCABULARY_FILE).is_file():
            return cls(UnigramTokenizer(Vocabulary.read(folder)), identity)
        return cls(HubSegmenter(folder / TOKENIZER_FILE), identity)

    @property
    def max_tokens(self) -> int:
        """Longest input in tokens, `overhead` included."""
        return self._identity.max_tokens

    @property
    def overhead(self) -> int:
        """Tokens that the passage prefix and the special tokens add to every text."""
        return self._overhead

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids that frame a text or stand for what the vocabulary lacks."""
        return self._segmenter.special_ids

    @property
    def adds_up(self) -> bool:
        """Whether a text has as many tokens as its lines together (`chunk.counting.sparing`)."""
        return getattr(self._segmenter, "adds_up", False)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without prefix and special tokens."""
        return [len(ids) for ids in self._segmenter.ids(texts)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open code-point span of each token in `text`, in order."""
        return self._segmenter.offsets(text)

    def encode(self, texts: Sequence[str], kind: Kind) -> Encoded:
        """Ids as the model reads them; longer inputs lose their end, never their last token."""
        prefix = self._identity.prefix(kind)
        before, after = self._segmenter.frame
        room = self._identity.max_tokens - len(before) - len(after)
        plain = self._segmenter.ids([prefix + text for text in texts])
        truncated = tuple(at for at, ids in enumerate(plain) if len(ids) > room)
        return Encoded([[*before, *ids[:room], *after] for ids in plain], truncated)
