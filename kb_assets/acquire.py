"""Stage 1 as an asset: the bytes of a source, stored and numbered."""

from __future__ import annotations

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

ASSET = StageAsset(
    stage=Stage.ACQUIRE,
    description=(
        "Reads the source (a file or a URL), tells its type from its bytes, holds it to the "
        "limits, stores it under its digest and gives the version its number. Bytes already "
        "known for the same readers end here as a duplicate; an unchanged document ends here "
        "too, at the cost of one hash."
    ),
    kinds=frozenset({"file"}),
)

acquire = stage_op(ASSET)
