"""The staged unit that becomes a passage; shape only, cutting is `chunk`'s work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice of the body that can be cited.

    Attributes:
        ordinal: 0-based position within the version.
        passage_id: stable id (`model.ids.passage_id`).
        text: exactly `body_bytes[byte_start:byte_end]` and `page_text[char_start:char_end]`.
        context: breadcrumb of title and heading path (for a table also its header row and the
            paragraph before); indexed and embedded with the text, never cited.
        heading_path: headings above, from the root down.
        page: 1-based page or None.
        locator: place in the document's own terms or None.
        byte_start: in the body, UTF-8 bytes.
        byte_end: exclusive.
        char_start: in the page text (the body where there are no pages), code points.
        char_end: exclusive.
        content_hash: SHA-256 hex of `text`.
        embed_hash: SHA-256 hex of what is embedded (`embedding_input`).
        token_count: tokens of `embedding_input` by the embedding model's tokenizer, with prefix
            and special tokens.
    """

    ordinal: int
    passage_id: str
    text: str
    context: str
    heading_path: tuple[str, ...]
    page: int | None
    locator: str | None
    byte_start: int
    byte_end: int
    char_start: int
    char_end: int
    content_hash: str
    embed_hash: str
    token_count: int


def embedding_input(context: str, text: str) -> str:
    """What is embedded for a chunk: its context, a newline, its text."""
    return f"{context}\n{text}" if context else text
