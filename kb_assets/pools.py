"""The concurrency pools of the line, made before a run needs them, and slots of the dead.

Here for a race in dagster 1.13.27: a pool's row is made by the first run that claims a slot;
of two that do so at once on a new instance the second fails, since it goes on in a transaction that
Postgres has aborted (`_core/storage/event_log/sql_event_log.py`,
`initialize_concurrency_limit_to_default`). tests/dagster/test_workers.py tells when that is mended.
"""

from __future__ import annotations

import dagster as dg
from sqlalchemy.exc import DBAPIError

from kb_assets.line import POOLS


def ensure_pools(instance: dg.DagsterInstance) -> None:
    """Make the rows of our pools, whoever else is making them.

    Raises:
        sqlalchemy.exc.DBAPIError: the storage is away.
    """
    storage = instance.event_log_storage
    for pool in sorted(POOLS - storage.get_concurrency_keys()):
        try:
            storage.initialize_concurrency_limit_to_default(pool)
        except DBAPIError:
            if pool not in storage.get_concurrency_keys():
                raise


def free_slots(instance: dg.DagsterInstance) -> list[str]:
    """Give back the pool slots of runs that ended without doing so; returns the runs' ids.

    A worker that was killed keeps its slot, and with a limit of one nobody else ever gets it.
    """
    storage = instance.event_log_storage
    ended = [
        dg.DagsterRunStatus.SUCCESS,
        dg.DagsterRunStatus.FAILURE,
        dg.DagsterRunStatus.CANCELED,
    ]
    held = sorted(storage.get_concurrency_run_ids())
    runs = instance.get_runs(dg.RunsFilter(run_ids=held, statuses=ended)) if held else []
    for run in runs:
        storage.free_concurrency_slots_for_run(run.run_id)
    return [run.run_id for run in runs]
