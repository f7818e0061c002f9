"""Retrievers for other people's frameworks, each a module of its own.

Belongs here: `kb.adapters.langchain` and `kb.adapters.llamaindex`, thin over `KnowledgeBase`. What
does not: their frameworks, which are installed by who uses them; nothing here is imported unless
asked for.
"""
