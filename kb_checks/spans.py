"""Do spans rebuild the text they claim?

Belongs here: the invariants of chunks against body and page texts, in plain Python. Columns on
their own (types, ranges, uniqueness) are `schemas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kb_resources.model import Chunk, PageSpan, content_hash


def problems(
    body: str, pages: Sequence[PageSpan], chunks: Sequence[Chunk]
) -> Iterator[dict[str, str]]:
    """Rows for chunks whose spans do not rebuild their text, overlap, or stand out of order.

    Args:
        body: canonical Markdown of the version.
        pages: its pages, empty where the format has none.
        chunks: in ordinal order.
    """
    data = body.encode()
    page_texts = {span.page: body[span.char_start : span.char_end] for span in pages}
    last_end = 0
    for chunk in chunks:
        where = f"chunk {chunk.ordinal}, bytes {chunk.byte_start}–{chunk.byte_end}"
        piece = data[chunk.byte_start : chunk.byte_end].decode(errors="replace")
        page_text = page_texts.get(chunk.page or 0, "") if page_texts else body
        if not chunk.text.strip():
            yield {"what": "blank text", "where": where}
        if content_hash(piece) != chunk.content_hash:
            yield {"what": "the byte span gives another text", "where": where}
        if page_text[chunk.char_start : chunk.char_end] != piece:
            yield {"what": "the page span gives another text", "where": where}
        if chunk.byte_start < last_end:
            yield {"what": "overlaps the chunk before, or stands out of order", "where": where}
        last_end = max(last_end, chunk.byte_end)
