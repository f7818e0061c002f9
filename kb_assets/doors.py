"""Which documents a step is about, whichever door the run came through.

The asset door (UI, backfill, GraphQL) names partitions; the batch door (`kb_batch`) names a stored
list or a selection. Belongs here: telling the doors apart and finding the keys. What does not:
working on them (`stage_op`). Partition ranges: https://docs.dagster.io/guides/build/partitions-and-backfills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from kb_resources.bindings.line import BatchSelection
from kb_resources.errors import InputError
from kb_resources.model import ORDER, AnyStage, DocumentKey, DocumentState
from kb_resources.stages.line import Line

BATCH_TAG = "kb/batch"


@dataclass(frozen=True, slots=True)
class Door:
    """How a run came to this step.

    Attributes:
        is_asset_run: whether partitions were selected; Dagster then plans every asset and check.
        wanted: whether this stage was asked for; other steps of the graph pass by.
        first: whether no earlier stage runs before this one in this run.
        opening: whether no earlier stage was asked for, in this run or the one it repeats.
    """

    is_asset_run: bool
    wanted: bool
    first: bool
    opening: bool


def door_of(context: dg.OpExecutionContext, stage: AnyStage, batch: BatchSelection) -> Door:
    """Tell which door the run came through."""
    if context.has_assets_def:
        selected = _selected_stages(context)
        wanted = stage in selected
    else:
        selected = tuple(batch.stages) or ORDER
        wanted = stage in selected
    executed = _executed_stages(context)
    before = [s for s in selected if s in executed and ORDER.index(s) < ORDER.index(stage)]
    earlier = [s for s in selected if ORDER.index(s) < ORDER.index(stage)]
    return Door(
        is_asset_run=context.has_assets_def, wanted=wanted, first=not before, opening=not earlier
    )


def keys_at(
    context: dg.OpExecutionContext, door: Door, stage: AnyStage, batch: BatchSelection, line: Line
) -> list[DocumentKey]:
    """The documents that this step works on, in order.

    In the first step of a run: all that were asked for. In later ones: those the step before left
    going on, as the ledger tells; so a crash between two steps loses nothing.
    """
    keys = asked_for(context, door, batch, line)
    if door.opening or (door.first and context.run.parent_run_id is None):
        return keys
    if not door.first:
        return line.in_line(stage, keys)
    # Re-execution from a failed step: what waits here, and what broke here the last time.
    waiting = set(line.in_line(stage, keys))
    return [key for key in keys if key in waiting or _broke(line, stage, key)]


def asked_for(
    context: dg.OpExecutionContext, door: Door, batch: BatchSelection, line: Line
) -> list[DocumentKey]:
    """All documents that the run is about, also those that left the line before this step."""
    if door.is_asset_run:
        return [DocumentKey.parse(key) for key in context.partition_keys]
    return _batch_keys(context, batch, line)


def _broke(line: Line, stage: AnyStage, key: DocumentKey) -> bool:
    return bool(line.facts(stage, key)["state"] == DocumentState.FAILED)


def _batch_keys(
    context: dg.OpExecutionContext, batch: BatchSelection, line: Line
) -> list[DocumentKey]:
    """The stored list; a selection is stored by the first step, since its states change."""
    batch_id = batch.batch_id or _tagged_batch(context)
    if not batch_id:
        selected = (
            _known(line, batch)
            if batch.documents
            else line.select(batch.scope, batch.states, batch.limit)
        )
        batch_id = line.new_batch(selected, actor="kb_batch", cause=f"run {context.run_id}")
        context.instance.add_run_tags(context.run_id, {BATCH_TAG: batch_id})
        return selected
    keys = line.batch(batch_id)
    if not keys and batch.batch_id:
        raise InputError(
            f"There is no batch {batch_id!r}, or it names no document.",
            next_step="Launch kb_batch with scope and where instead.",
        )
    return keys


def _known(line: Line, batch: BatchSelection) -> list[DocumentKey]:
    """The documents that were named; all of them are in the ledger."""
    keys = [DocumentKey(batch.scope, name) for name in dict.fromkeys(batch.documents)]
    unknown = {str(key) for key in keys} - {str(row.key) for row in line.rows(keys)}
    if unknown:
        raise InputError(
            f"{', '.join(sorted(unknown)[:5])}: no such document.",
            next_step="Copy its name from kb_scopes/health or from the partitions of kb/acquire.",
        )
    return keys


def _tagged_batch(context: dg.OpExecutionContext) -> str:
    run = context.instance.get_run_by_id(context.run_id)
    return run.tags.get(BATCH_TAG, "") if run else ""


def _selected_stages(context: dg.OpExecutionContext) -> Sequence[AnyStage]:
    selection = context.run.asset_selection
    if not selection:
        return ORDER
    return [stage for stage in ORDER if dg.AssetKey(["kb", stage.value]) in selection]


def _executed_stages(context: dg.OpExecutionContext) -> Sequence[AnyStage]:
    keys = context.run.step_keys_to_execute
    if keys is None:
        return ORDER
    names = {key.rsplit(".", 1)[-1] for key in keys}
    return [stage for stage in ORDER if stage.value in names]
