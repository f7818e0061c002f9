"""Stage 4 as an asset: the verdict that the gate believes."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

ASSET = StageAsset(
    stage=Stage.SCAN,
    description=(
        "Applies the rule pack to the raw extraction, hidden parts and decoded forms "
        "included, before any model sees a word. The verdict is for exactly these bytes; "
        "chunk, embed, index, supersede and the database itself refuse anything without a "
        "clean one."
    ),
    kinds=frozenset({"python"}),
)

scan = stage_op(ASSET)
