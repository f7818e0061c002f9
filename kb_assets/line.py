"""The line: one graph of eight ops with two front doors, and of up to two more that ask a model.

`document_assets` is the asset door (UI, backfills, GraphQL); `kb_batch` in `batch` is the other.
Belongs here: composing. Why this shape and not eight assets with outputs, see
docs/adr/0003-dagster-line.md; graph-backed assets:
https://docs.dagster.io/guides/build/assets/graph-backed-assets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import dagster as dg

from kb_assets import (
    acquire,
    chunk,
    convert,
    embed,
    enrich,
    index,
    language,
    parse,
    scan,
    supersede,
)
from kb_assets.stage_op import StageAsset, check_output
from kb_checks.registry import ALL_CHECKS
from kb_checks.reporting import asset_key, specs
from kb_resources.bindings.partitions import documents
from kb_resources.model import ORDER, AnyStage, ModelStage, Stage, stage_of

GROUP_NAME = "documents"
OWNERS = ["team:kb"]
DOCUMENTS_PER_RUN = 200
"""Partitions of one backfill run: a run costs seconds to start, a document a tenth of one."""

_STAGES: tuple[tuple[StageAsset, dg.OpDefinition], ...] = (
    (acquire.ASSET, acquire.acquire),
    (parse.ASSET, parse.parse),
    (language.ASSET, language.language),
    (scan.ASSET, scan.scan),
    (convert.ASSET, convert.convert),
    (chunk.ASSET, chunk.chunk),
    (embed.ASSET, embed.embed),
    (index.ASSET, index.index),
    (enrich.ASSET, enrich.enrich),
    (supersede.ASSET, supersede.supersede),
)
STAGE_ASSETS: dict[AnyStage, StageAsset] = {asset.stage: asset for asset, _ in _STAGES}
POOLS = frozenset(asset.pool for asset, _ in _STAGES if asset.pool)
"""Concurrency pools that steps claim a slot of."""

executor = dg.in_process_executor.configured(
    {"step_dependency_config": {"require_upstream_step_success": False}}
)
"""Steps in one process, so that the model is loaded once; a failed step does not stop the rest."""


def stages_with(models: Collection[ModelStage]) -> tuple[AnyStage, ...]:
    """The eight stages and those of a model's that are on, in order."""
    return tuple(stage for stage in ORDER if stage in models or isinstance(stage, Stage))


def behind_the_gate(
    models: Collection[ModelStage],
) -> tuple[tuple[AnyStage, dg.OpDefinition], ...]:
    """The stages that only cleared documents reach, in order, with their ops."""
    gate = ORDER.index(Stage.SCAN)
    wanted = [stage for stage in stages_with(models) if ORDER.index(stage) > gate]
    return tuple((asset.stage, op) for asset, op in _STAGES if asset.stage in wanted)


def _check_outputs(stages: Sequence[AnyStage]) -> dict[str, tuple[AnyStage, str]]:
    """Graph outputs of the checks, named as Dagster expects them."""
    return {
        f"kb__{stage.value}_{check.name}": (stage, check.name)
        for stage in stages
        for check in ALL_CHECKS[stage]
    }


@lru_cache
def line_graph(models: frozenset[ModelStage] = frozenset()) -> dg.GraphDefinition:
    """The graph; a stage that is off has no op in it."""
    stages = stages_with(models)
    checks = _check_outputs(stages)

    @dg.graph(
        name="document_line",
        description="The stages over the documents of a run, one after the other.",
        out={
            **{stage.value: dg.GraphOut() for stage in stages},
            **{name: dg.GraphOut() for name in checks},
        },
    )
    def document_line() -> Mapping[str, Any]:
        """Chain the ops by `done`; give every asset and check its output."""
        called: dict[AnyStage, Any] = {}
        after = None
        for asset, op in _STAGES:
            if asset.stage not in stages:
                continue
            called[asset.stage] = op() if after is None else op(after)
            after = called[asset.stage].done
        return {
            **{stage.value: result.asset for stage, result in called.items()},
            **{
                output: getattr(called[stage], check_output(name))
                for output, (stage, name) in checks.items()
            },
        }

    return document_line


def _describe(spec: dg.AssetSpec) -> dg.AssetSpec:
    asset = STAGE_ASSETS[stage_of(spec.key.path[-1])]
    return spec.replace_attributes(
        description=asset.description,
        owners=OWNERS,
        kinds=set(asset.kinds),
        code_version=asset.code_version,
        group_name=GROUP_NAME,
        tags={"kb/stage": asset.stage.value, "kb/gate": _side_of_gate(asset.stage)},
        metadata={**spec.metadata, **asset.metadata},
    )


def _side_of_gate(stage: AnyStage) -> str:
    return "before" if ORDER.index(stage) <= ORDER.index(Stage.SCAN) else "behind"


def document_assets(models: frozenset[ModelStage] = frozenset()) -> dg.AssetsDefinition:
    """The asset door: an asset a stage over one graph, partitioned by document."""
    order = stages_with(models)
    return dg.AssetsDefinition.from_graph(
        line_graph(models),
        keys_by_output_name={stage.value: asset_key(stage) for stage in order},
        internal_asset_deps={
            stage.value: {asset_key(order[place - 1])} if place else set()
            for place, stage in enumerate(order)
        },
        can_subset=True,
        partitions_def=documents,
        backfill_policy=dg.BackfillPolicy.multi_run(DOCUMENTS_PER_RUN),
        check_specs=list(specs(documents, order)),
    ).map_asset_specs(_describe)


def kb_documents(
    models: frozenset[ModelStage] = frozenset(),
) -> dg.UnresolvedAssetJobDefinition:
    """The asset door as a job: the assets of all stages for chosen partitions."""
    return dg.define_asset_job(
        "kb_documents",
        selection=dg.AssetSelection.assets(*(asset_key(stage) for stage in stages_with(models))),
        executor_def=executor,
        description="All stages for single documents or a backfill, by partition.",
    )
