"""The only part of `kb_resources` that knows Dagster: resources, partitions, events, metadata.

Everything here turns something of ours into something of Dagster's and decides nothing.
"""
