"""The calls of `KnowledgeBase` about what a question is embedded with.

Belongs here: signatures, documentation, who asks. What does not: the work
(`kb_resources.retrieve`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kb_resources.model import Principal, validate_scope

if TYPE_CHECKING:
    from kb.reader import Reader
    from kb_resources.retrieve import EmbeddedQuestion


class EmbeddingCalls:
    """Part of `KnowledgeBase`, which opens the reader and knows who asks."""

    def supports_hybrid(self, *, scope: str, audiences: Iterable[str] = ()) -> bool:
        """Whether the scope can be searched by meaning beside words; `search` says so in `mode`.

        Raises:
            NotFound: no such scope.
        """
        return self._reader().retriever.supports_hybrid(
            scope=validate_scope(scope), principal=self._principal(audiences)
        )

    def embed(self, text: str, *, scope: str, audiences: Iterable[str] = ()) -> EmbeddedQuestion:
        """A question with its vector, which `search` takes in place of the text.

        Raises:
            NotFound: no such scope.
            UnavailableError: database or model is away, or there is no model.
        """
        return self._reader().retriever.embed(
            text, scope=validate_scope(scope), principal=self._principal(audiences)
        )

    def _reader(self) -> Reader:
        raise NotImplementedError

    def _principal(self, audiences: Iterable[str]) -> Principal:
        raise NotImplementedError
