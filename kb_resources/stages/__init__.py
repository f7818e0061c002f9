"""Use cases: load rows, call one capability, write one transaction, report.

Free of Dagster: the asset graph, `kb ingest --no-dagster` and the tests drive the same functions.
A stage never imports another stage; `line` puts them in order.
"""
