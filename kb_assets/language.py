"""Stage 3 as an asset: is the text in a language that the scope accepts?"""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

ASSET = StageAsset(
    stage=Stage.LANGUAGE,
    description=(
        "Looks at visible text only. A language that the scope does not accept ends the "
        "document here and its text is deleted; text too short to tell goes on as "
        "undetermined."
    ),
    kinds=frozenset({"python"}),
)

language = stage_op(ASSET)
