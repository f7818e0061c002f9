"""The chunk capability: from parsed blocks to chunks that can be embedded and cited.

Belongs here: cutting and counting. Not here: tokenizers (any `TokenCounter` will do), storage.
See docs/adr for why it cuts as it does; sizes follow Chroma's evaluation of chunking,
https://research.trychroma.com/evaluating-chunking.
"""

from typing import TYPE_CHECKING

from kb_resources.chunk.counting import EstimateCounter, TokenCounter, counting_warning
from kb_resources.chunk.options import CHUNKER_VERSION, PRESETS, ChunkOptions, preset
from kb_resources.lazy import on_demand

if TYPE_CHECKING:
    from kb_resources.chunk.chunker import chunk_document
    from kb_resources.chunk.layout import Chunkable
else:
    __getattr__ = on_demand(
        __name__,
        {
            "chunker": ("chunk_document",),
            "layout": ("Chunkable",),
        },
    )

__all__ = [
    "CHUNKER_VERSION",
    "PRESETS",
    "ChunkOptions",
    "Chunkable",
    "EstimateCounter",
    "TokenCounter",
    "chunk_document",
    "counting_warning",
    "preset",
]
