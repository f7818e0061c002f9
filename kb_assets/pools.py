"""The concurrency pools of the line, made before a run needs them.

Belongs here: a race in dagster 1.13.27. A pool's row is made by the first run that claims a slot;
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
