"""Stage 5 as an asset: passages that can be cited."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

ASSET = StageAsset(
    stage=Stage.CHUNK,
    description=(
        "Cuts the cleared body at its own borders. Every chunk is an exact slice of the body "
        "and of its page, fits the model with its context, and keeps its id when text "
        "elsewhere changes."
    ),
    kinds=frozenset({"python"}),
)

chunk = stage_op(ASSET)
