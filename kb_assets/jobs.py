"""The two doors as jobs that a process of ours can run with the line's own executor.

`JobDefinition.execute_in_process` puts Dagster's plain executor in the place of ours, and then a
failed step keeps the rest of the batch from going on; `dg.execute_job` over a reconstructable job
does not. See https://docs.dagster.io/api/dagster/execution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from kb_assets.batch import JOB_NAME
from kb_assets.pools import ensure_pools
from kb_assets.workers import clear_up


def batch_job() -> dg.JobDefinition:
    """`kb_batch` with its resources."""
    from kb_assets.definitions import build_defs

    return build_defs().resolve_job_def(JOB_NAME)


def asset_job() -> dg.JobDefinition:
    """`kb_documents` with its resources: what the UI and backfills launch, by name."""
    from kb_assets.definitions import build_defs

    return build_defs().resolve_job_def("kb_documents")


def run_batch(
    instance: dg.DagsterInstance,
    config: Mapping[str, Any],
    tags: Mapping[str, str],
    reexecution: dg.ReexecutionOptions | None = None,
) -> dg.JobExecutionResult:
    """Run `kb_batch` in this process; a failed run is a result, not an exception.

    Args:
        instance: where the run is recorded.
        config: as `BatchConfig`.
        tags: run tags.
        reexecution: which steps of which run to do again, or None.
    """
    ensure_pools(instance)
    clear_up(instance)
    return dg.execute_job(
        dg.reconstructable(batch_job),
        instance=instance,
        run_config=dict(config),
        tags=dict(tags),
        reexecution_options=reexecution,
        raise_on_error=False,
    )


def run_assets(
    instance: dg.DagsterInstance, partition: str, assets: Sequence[dg.AssetKey]
) -> dg.JobExecutionResult:
    """Materialise assets of one partition in this process, as the launchpad does."""
    ensure_pools(instance)
    clear_up(instance)
    return dg.execute_job(
        dg.reconstructable(asset_job),
        instance=instance,
        tags={"dagster/partition": partition},
        asset_selection=list(assets),
        raise_on_error=False,
    )
