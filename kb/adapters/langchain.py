"""A LangChain retriever over a knowledge base.

Example:
    >>> from kb import KnowledgeBase
    >>> from kb.adapters.langchain import KbRetriever
    >>> retriever = KbRetriever(knowledge_base=KnowledgeBase(), scope="acme")
    >>> retriever.invoke("How many days of leave?")

Belongs here: the retriever class. What does not: searching.
See https://python.langchain.com/docs/concepts/retrievers/.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise ImportError("This adapter needs LangChain: pip install langchain-core.") from error

from pydantic import ConfigDict

from kb.adapters._common import metadata_of


class KbRetriever(BaseRetriever):
    """Passages of one scope as LangChain documents, best first.

    Attributes:
        knowledge_base: a `KnowledgeBase`, which the caller opens and closes.
        scope: scope name.
        audiences: names the reader holds.
        k: passages at most, 1 to 100.
        mode: `hybrid`, `text` or `vector`.
        as_of: aware time; what was valid then instead of now.
        words: passages with `any` of the words, with `all` of them, or those `all_first`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    knowledge_base: Any
    scope: str
    audiences: Sequence[str] = ()
    k: int = 8
    mode: str = "hybrid"
    as_of: datetime | None = None
    words: str = "any"

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
    ) -> list[Document]:
        found = self.knowledge_base.search(
            query,
            scope=self.scope,
            audiences=self.audiences,
            k=self.k,
            mode=self.mode,
            as_of=self.as_of,
            words=self.words,
        )
        return [
            Document(
                id=hit.passage_id,
                page_content=hit.text,
                metadata=metadata_of(hit, found.correlation_id),
            )
            for hit in found.hits
        ]
