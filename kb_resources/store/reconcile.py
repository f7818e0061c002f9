"""Differences between tables that ought to agree, and mending them.

Belongs here: statements inside the caller's transaction. What does not: blobs and Dagster.
"""

from __future__ import annotations

from kb_resources.model import DocumentKey
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql

Found = list[tuple[int, DocumentKey]]
"""Row key and name of documents."""


def _documents(conn: Conn, statement: str) -> Found:
    return [
        (row, DocumentKey(scope, document_id))
        for row, scope, document_id in conn.execute(sql(statement)).fetchall()
    ]


def drifted_readers(conn: Conn) -> Found:
    """Documents with search rows that have another scope or other readers than they."""
    return _documents(conn, "drifted_rows")


def mend_readers(conn: Conn, document_key: int) -> int:
    """Give the search rows the document's readers; rows changed."""
    given = {"document_key": document_key}
    return (
        conn.execute(sql("mend_lexical_readers"), given).rowcount
        + conn.execute(sql("mend_vector_readers"), given).rowcount
    )


def drifted_validity(conn: Conn) -> Found:
    """Documents with search rows that hold at other times than the ledger says."""
    return _documents(conn, "drifted_validity")


def mend_validity(conn: Conn, document_key: int) -> None:
    """Bring the search rows of a document in line with the ledger's intervals."""
    conn.execute(sql("mend_validity"), {"document_key": document_key})


def unpublished(conn: Conn) -> Found:
    """Documents said to be indexed of which search finds nothing."""
    return _documents(conn, "unpublished_documents")


def wrongly_published(conn: Conn) -> Found:
    """Removed or erased documents that search would still find."""
    return _documents(conn, "wrongly_published")


def drop_stale_staging(conn: Conn) -> int:
    """Delete staged rows that no run will publish any more; rows deleted."""
    row = conn.execute(sql("drop_stale_staging")).fetchone()
    return int(row[0]) if row else 0


def sources_of(conn: Conn, scope: str, digest: str) -> list[str]:
    """Where bytes came from that documents hold as their newest version."""
    given = {"scope": scope, "digest": digest}
    return [uri for (uri,) in conn.execute(sql("source_of_bytes"), given).fetchall()]


def partition_keys(conn: Conn) -> list[DocumentKey]:
    """Documents that an orchestrator should have a partition for."""
    return [DocumentKey(*row) for row in conn.execute(sql("partition_keys")).fetchall()]
