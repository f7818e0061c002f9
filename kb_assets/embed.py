"""Stage 6 as an asset: one vector for every chunk."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

ASSET = StageAsset(
    stage=Stage.EMBED,
    description=(
        "Groups chunks of equal length over all documents of the run. Texts that the scope "
        "embedded before keep their vectors. Vectors of two models are never mixed."
    ),
    kinds=frozenset({"onnx", "python"}),
    pool="kb_embed",
)

embed = stage_op(ASSET)
