"""Stage 2 as an asset: bytes to blocks, body and hidden text."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

ASSET = StageAsset(
    stage=Stage.PARSE,
    description=(
        "Runs the parser in a limited child process. Gives blocks with page, place and "
        "heading path, the body as Markdown, and everything a reader does not see, which only "
        "the scan reads."
    ),
    kinds=frozenset({"docling", "markdown"}),
    pool="kb_parse",
)

parse = stage_op(ASSET)
