"""Optional stage as an asset: a model's notes on sections, beside the text and never in it."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import ModelStage

ASSET = StageAsset(
    stage=ModelStage.ENRICH,
    description=(
        "On with KB_ENRICH. Summaries, entities and keywords of published sections from 500 "
        "characters on, bottom-up, by the model at KB_GENERATE_URL. Found again by the hash of "
        "what was sent: an unchanged section asks nothing."
    ),
    kinds=frozenset({"openai", "python"}),
    pool="kb_generate",
)

enrich = stage_op(ASSET)
