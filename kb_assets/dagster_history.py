"""The asset `kb_scopes/dagster_history`: Dagster's own tables, pruned once a night and weighed.

Belongs here: the rhythm and what operators see. What does not: what may go (`pruning`).
"""

from collections.abc import Mapping
from datetime import timedelta

import dagster as dg

from kb_assets.forget import storage_dsn
from kb_assets.pruning import prune
from kb_assets.scopes import GROUP_NAME, OWNERS
from kb_resources.bindings.metadata import table
from kb_resources.settings import load_settings

HISTORY = dg.AssetKey(["kb_scopes", "dagster_history"])


@dg.asset(
    key=HISTORY,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    description=(
        "Size of Dagster's own tables. Logs of ended runs and superseded events older than "
        "`KB_DAGSTER_KEEP_DAYS` are deleted; the newest event and check result of each document "
        "stay, so no colour changes."
    ),
    automation_condition=dg.AutomationCondition.on_cron("10 4 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=3), warn_window=timedelta(days=2)
    ),
)
def dagster_history() -> dg.MaterializeResult[None]:
    """Prune and weigh once."""
    settings = load_settings()
    found = prune(storage_dsn(settings), keep_days=settings.dagster_keep_days)
    return dg.MaterializeResult(
        metadata={
            "deleted": sum(found.deleted.values()),
            "bytes": sum(found.bytes_by_table.values()),
            "kept_days": settings.dagster_keep_days,
            "deleted_rows": _table("rows", found.deleted),
            "sizes": _table("bytes", found.bytes_by_table),
        }
    )


def _table(unit: str, numbers: Mapping[str, int]) -> dg.TableMetadataValue:
    rows = ({"what": what, unit: number} for what, number in numbers.items())
    return table({"what": "string", unit: "int"}, rows)
