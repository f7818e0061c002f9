"""A LlamaIndex retriever over a knowledge base.

Example:
    >>> from kb import KnowledgeBase
    >>> from kb.adapters.llamaindex import KbRetriever
    >>> retriever = KbRetriever(KnowledgeBase(), scope="acme")
    >>> retriever.retrieve("How many days of leave?")

Belongs here: the retriever class. What does not: searching.
See https://docs.llamaindex.ai/en/stable/module_guides/querying/retriever/.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise ImportError("This adapter needs LlamaIndex: pip install llama-index-core.") from error

from kb.adapters._common import Searches, metadata_of


class KbRetriever(BaseRetriever):
    """Passages of one scope as LlamaIndex nodes, best first and without scores.

    Args:
        knowledge_base: a `KnowledgeBase`, which the caller opens and closes.
        scope: scope name.
        audiences: names the reader holds.
        k: passages at most, 1 to 100.
        mode: `hybrid`, `text` or `vector`.
        as_of: aware time; what was valid then instead of now.
        words: passages with `any` of the words, with `all` of them, or those `all_first`.
    """

    def __init__(
        self,
        knowledge_base: Searches,
        *,
        scope: str,
        audiences: Sequence[str] = (),
        k: int = 8,
        mode: str = "hybrid",
        as_of: datetime | None = None,
        words: str = "any",
    ) -> None:
        self._knowledge_base = knowledge_base
        self._scope = scope
        self._audiences = tuple(audiences)
        self._k = k
        self._mode = mode
        self._as_of = as_of
        self._words = words
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._knowledge_base.search(
            query_bundle.query_str,
            scope=self._scope,
            audiences=self._audiences,
            k=self._k,
            mode=self._mode,
            as_of=self._as_of,
            words=self._words,
        )
        return [
            NodeWithScore(
                node=TextNode(
                    id_=f"{hit.passage_id}@{hit.version}",
                    text=hit.text,
                    metadata=metadata_of(hit, found.correlation_id),
                )
            )
            for hit in found.hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
