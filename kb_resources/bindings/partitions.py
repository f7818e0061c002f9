"""One dynamic partition per document, `scope:document`.

Belongs here: the definition and adding keys. Two dynamic dimensions would be a cross product, see
docs/adr/0003-dagster-line.md and
https://docs.dagster.io/guides/build/partitions-and-backfills/partitioning-assets.
"""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from kb_resources.model import DocumentKey

documents = dg.DynamicPartitionsDefinition(name="kb_documents")


def add_documents(instance: dg.DagsterInstance, keys: Iterable[DocumentKey]) -> None:
    """Make documents known to Dagster; known ones are left alone."""
    instance.add_dynamic_partitions(str(documents.name), [str(key) for key in keys])
