"""The chunker: from a parsed document to chunks, pure and deterministic.

Belongs here: the public call, and what turns a counted draft into a chunk. How it cuts lies in
`structured` and `flat`, the exact limit in `drafts`.
Chunks as exact slices with spans are the octabits knowledge package's idea (O-02 to O-07).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kb_resources.chunk.counting import TokenCounter, sparing
from kb_resources.chunk.drafts import Counted, settle
from kb_resources.chunk.flat import flat_drafts
from kb_resources.chunk.layout import Chunkable, Placed, place
from kb_resources.chunk.options import ChunkOptions
from kb_resources.chunk.overlap import with_overlap
from kb_resources.chunk.structured import section_drafts
from kb_resources.errors import InputError, IntegrityError
from kb_resources.model import Chunk, passage_id, sha256_hex, validate_document_id
from kb_resources.model.chunk import embedding_input

# Neither white space, nor control, nor a character without a width or glyph of its own.
_VISIBLE: Final = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)


def chunk_document(
    document: Chunkable,
    *,
    document_id: str,
    counter: TokenCounter,
    options: ChunkOptions | None = None,
) -> tuple[Chunk, ...]:
    """Cut a document into chunks.

    Every visible text of the body is in exactly one chunk (with overlap: in at least one). A chunk
    is a slice of the body, lies in one page and one locator, and, but for the `flat` strategy, in
    one section. A heading is in the breadcrumb of everything below it and stands in the text of
    the first chunk of its section too: what a parser wrongly took for a heading can be quoted.

    Args:
        document: title, body, blocks and pages; `model.ParsedDocument` fits.
        document_id: goes into the passage ids.
        counter: counts as the embedding model does.
        options: how to cut; the hierarchical preset for None.

    Returns:
        Chunks in body order, spans disjoint unless an overlap is asked for. None for a document
        without visible text.

    Raises:
        InputError: malformed document id, or a limit that leaves no room for text.
        IntegrityError: the document contradicts its own spans, or the counter its protocol.
    """
    options = options or ChunkOptions()
    validate_document_id(document_id)
    if 2 * (counter.overhead + options.overlap_tokens) > options.max_tokens:
        raise InputError(
            f"The model adds {counter.overhead} tokens to each text and {options.overlap_tokens} "
            f"are repeated; max_tokens is {options.max_tokens}.",
            next_step="Raise max_tokens to at least twice their sum.",
        )
    body, counter = document.body, sparing(counter)
    draft = flat_drafts if options.strategy == "flat" else section_drafts
    placed = place(document)
    drafts = list(draft(document, placed, counter, options))
    if options.overlap_tokens:
        drafts = with_overlap(body, drafts, options.overlap_tokens, counter)
    counted = settle(body, drafts, options.max_tokens, counter)
    return tuple(_chunks(body, placed, counted, document_id))


def _chunks(
    body: str, placed: Sequence[Placed], counted: Sequence[Counted], document_id: str
) -> Iterator[Chunk]:
    block_bytes = {each.start: each.block.byte_start for each in placed}
    seen: Counter[str] = Counter()
    position = byte_position = 0
    visible = (each for each in counted if _VISIBLE.search(body, each.draft.start, each.draft.end))
    for ordinal, each in enumerate(visible):
        draft = each.draft
        byte_position += len(body[position : draft.start].encode())
        if block_bytes.get(draft.start, byte_position) != byte_position:
            raise IntegrityError(
                f"The block at byte {byte_position} of the body says it begins elsewhere.",
                next_step="Parse the document again.",
            )
        text, context = body[draft.text_start : draft.end], draft.context
        data = text.encode()
        repeated = len(body[draft.text_start : draft.start].encode())
        byte_start, position = byte_position - repeated, draft.end
        byte_position = byte_start + len(data)
        text_hash = sha256_hex(data)
        embedded = hashlib.sha256(embedding_input(context, "").encode())
        embedded.update(data)
        first = passage_id(document_id, draft.heading_path, text_hash, 0)
        nth = seen[first]
        seen[first] += 1
        yield Chunk(
            ordinal=ordinal,
            passage_id=passage_id(document_id, draft.heading_path, text_hash, nth)
            if nth
            else first,
            text=text,
            context=context,
            heading_path=draft.heading_path,
            page=draft.page,
            locator=draft.locator,
            byte_start=byte_start,
            byte_end=byte_position,
            char_start=draft.text_start - draft.page_start,
            char_end=draft.end - draft.page_start,
            content_hash=text_hash,
            embed_hash=embedded.hexdigest(),
            token_count=each.tokens,
        )
