"""Assets about answers: kept citations looked at again, and room in the logs.

Belongs here: small, unpartitioned assets on a schedule. What does not: checking a citation
(`kb_resources.answer`), going through them (`kb_resources.stages.citations`).
See https://docs.dagster.io/guides/automate/declarative-automation.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

from kb_assets.scopes import GROUP_NAME, OWNERS
from kb_resources.stages.citations import recheck_citations
from kb_resources.stages.line import Line
from kb_resources.store import logs

CITATIONS = dg.AssetKey(["kb_scopes", "citations"])
LOGS = dg.AssetKey(["kb_scopes", "logs"])
MONTHS_AHEAD = 3


@dg.asset(
    key=CITATIONS,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    description=(
        "Quotes that people keep, looked at again where a document holds another version than at "
        "their last check: they stand, are superseded, have moved, or are missing."
    ),
    automation_condition=dg.AutomationCondition.on_cron("*/15 * * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=24), warn_window=timedelta(hours=2)
    ),
)
def citations(line: dg.ResourceParam[Line]) -> dg.MaterializeResult[None]:
    """Check what is due."""
    capabilities = line.capabilities
    found = recheck_citations(capabilities.database, clock=capabilities.clock)
    return dg.MaterializeResult(
        metadata={
            "checked": found.checked,
            **{f"turned_{status}": count for status, count in sorted(found.turned.items())},
            **found.standing,
        }
    )


@dg.asset(
    key=LOGS,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    description="Monthly partitions of the retrieval, disclosure and answer logs, made ahead.",
    automation_condition=dg.AutomationCondition.on_cron("40 1 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=14), warn_window=timedelta(days=3)
    ),
)
def log_partitions(line: dg.ResourceParam[Line]) -> dg.MaterializeResult[None]:
    """Make the partitions of this and the coming months."""
    with line.capabilities.database.transaction("pipeline") as conn:
        made = logs.ensure_partitions(conn, datetime.now(UTC), MONTHS_AHEAD)
    return dg.MaterializeResult(metadata={"partitions_made": made})
