"""The reading side: Python clients, command line, HTTP, MCP.

Nothing here imports Dagster, kb_assets or kb_checks; `kb ingest` starts them as a child process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.async_client import AsyncKnowledgeBase
    from kb.client import KnowledgeBase

__all__ = ["AsyncKnowledgeBase", "KnowledgeBase"]


def __getattr__(name: str) -> object:
    """Import a client on first use, so that `import kb` stays cheap."""
    if name == "KnowledgeBase":
        from kb.client import KnowledgeBase

        return KnowledgeBase
    if name == "AsyncKnowledgeBase":
        from kb.async_client import AsyncKnowledgeBase

        return AsyncKnowledgeBase
    raise AttributeError(name)
