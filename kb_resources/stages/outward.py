"""Whether a document, whole or in parts, may go to another machine, and the row that says so.

Belongs here: what the stages parse, scan and embed ask before they send. What does not: the rule
and the log (`answer.disclosure`), sending. Requirement O-39: without a word from its owner a text
is confidential and stays on one's own machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kb_resources.answer.disclosure import Destination, Part, disclose_to
from kb_resources.model import DocumentKey
from kb_resources.retrieve.log import new_correlation_id
from kb_resources.stages.capabilities import Capabilities
from kb_resources.store import logs
from kb_resources.store.documents import DocumentRow

if TYPE_CHECKING:
    from kb_resources.embed import Embedder


class Leaving(Protocol):
    """A passage as far as the log names it."""

    @property
    def passage_id(self) -> str:
        """Its id."""
        ...

    @property
    def content_hash(self) -> str:
        """SHA-256 hex of its text."""
        ...

    @property
    def text(self) -> str:
        """What it says."""
        ...


def may_leave(caps: Capabilities, row: DocumentRow, to: Destination | None) -> bool:
    """Whether the document's class lets it go there; False for nowhere. Nothing is written."""
    return to is not None and to.admits(_class_of(caps, row))


def write_down(
    caps: Capabilities,
    row: DocumentRow,
    to: Destination,
    *,
    purpose: str,
    digest: str,
    size: int,
    correlation_id: str | None = None,
) -> bool:
    """Decide and write down, in a transaction that ends before anything is sent.

    Args:
        caps: of the line.
        row: the document.
        to: where to.
        purpose: `parse`, `second_opinion`, `convert` or `enrich`.
        digest: SHA-256 hex of what would be sent.
        size: of it: bytes of a file, code points of a text.
        correlation_id: of what else is written down about the call; None: nothing is.

    Returns:
        Whether it may be sent.
    """
    place = {"scope": row.scope, "document_id": row.document_id, "version": row.latest_version}
    part = Part("document", _class_of(caps, row), digest, size, place)
    with caps.database.transaction("pipeline") as conn:
        return disclose_to(
            conn,
            [part],
            to,
            purpose=purpose,
            scopes=[row.scope],
            actor=caps.actor,
            correlation_id=correlation_id or new_correlation_id(),
        )


def _class_of(caps: Capabilities, row: DocumentRow) -> str:
    with caps.database.transaction("pipeline") as conn:
        classes = logs.content_classes(conn, [row.scope], [row.document_id])
    return classes.get((row.scope, row.document_id), "confidential")


def passages_may_leave(
    caps: Capabilities,
    key: DocumentKey,
    version: int | None,
    chunks: Sequence[Leaving],
    embedder: Embedder,
) -> bool:
    """Whether chunks may go to an embedding model; decided and written down before they do.

    Args:
        caps: of the line.
        key: their document.
        version: its version.
        chunks: what would be embedded.
        embedder: the model; one on this machine is no destination, and nothing is written.
    """
    from kb_resources.embed.remote import RemoteEmbedder

    if not isinstance(embedder, RemoteEmbedder):
        return True
    with caps.database.transaction("pipeline") as conn:
        classes = logs.content_classes(conn, [key.scope], [key.document_id])
        held = classes.get((key.scope, key.document_id), "confidential")
        named = {"scope": key.scope, "document_id": key.document_id, "version": version}
        parts = [
            Part(
                "passage",
                held,
                chunk.content_hash,
                len(chunk.text),
                {**named, "passage_id": chunk.passage_id},
            )
            for chunk in chunks
        ]
        return disclose_to(
            conn,
            parts,
            Destination(embedder.address, embedder.model_id, caps.embed_hosting),
            purpose="embed_passages",
            scopes=[key.scope],
            actor=caps.actor,
            correlation_id=new_correlation_id(),
        )
