"""Stage 8 as an asset: what a publication ends, the final state, and the commit of the batch."""

from __future__ import annotations

from collections.abc import Sequence

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.compose_erasing import export_target
from kb_resources.model import DocumentKey, Stage
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line


def commit_batch(line: Line, keys: Sequence[DocumentKey]) -> None:
    """Commit what the run led to, where the git export is on.

    Raises:
        KbError: git is missing or failed.
    """
    if target := export_target(load_settings()):
        from kb_resources.stages.export import export_batch

        export_batch(line.capabilities, target, keys)


ASSET = StageAsset(
    stage=Stage.SUPERSEDE,
    description=(
        "Closes the documents that this one names as superseded, writes the lifecycle events "
        "and settles the document. The version it replaces stays readable with `--as-of` and "
        "`--include-historical`."
    ),
    kinds=frozenset({"postgres"}),
    then=commit_batch,
)

supersede = stage_op(ASSET)
