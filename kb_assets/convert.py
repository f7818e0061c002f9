"""Optional stage as an asset: the body as a model writes it, where that is the document's text."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import ModelStage

ASSET = StageAsset(
    stage=ModelStage.CONVERT,
    description=(
        "On with KB_CONVERT. Sends cleared documents to the model at KB_GENERATE_URL and keeps its "
        "Markdown where every sentence stands in the source; that body is scanned again before it "
        "goes on. Anything else that comes back leaves the deterministic parse as it is."
    ),
    kinds=frozenset({"openai", "markdown"}),
    pool="kb_generate",
)

convert = stage_op(ASSET)
