"""The capabilities of the knowledge base: what an asset, a command or a request is handed.

No module here imports Dagster, except those in `bindings`.
"""
