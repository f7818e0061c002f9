"""Assets about scopes, not documents: health and term statistics.

Belongs here: small, unpartitioned assets with a table of scopes, refreshed by automation and
watched by freshness policies. One run for all scopes: a run costs seconds, a scope milliseconds.
See https://docs.dagster.io/guides/observe/asset-freshness-policies.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from kb_assets import attention
from kb_checks.scope import CHECKS, ScopeCheck, problems
from kb_resources.bindings.metadata import table
from kb_resources.model import DocumentState
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import ScopeSums, refresh_statistics, scope_sums
from kb_resources.stages.usage import in_need

GROUP_NAME = "scopes"
OWNERS = ["team:kb"]
HEALTH = dg.AssetKey(["kb_scopes", "health"])
TERMS = dg.AssetKey(["kb_scopes", "terms"])
TERM_COLUMNS = ("scope", "analyzer", "passages", "counted", "counted_at", "terms")

# So that a new installation's page is not empty until the quarter of an hour; one try only.
_NEVER_LOOKED_AT = (
    dg.AutomationCondition.missing()
    & ~dg.AutomationCondition.newly_requested()
    & ~dg.AutomationCondition.in_progress()
    & ~dg.AutomationCondition.execution_failed()
)


@dg.asset(
    key=HEALTH,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    description=(
        "How every scope stands, from the ledger: documents by state, passages, backlog, what "
        "waits for somebody and why, with links that open the launchpad filled in. Look at the "
        "checks first: what is not as it should be fails one of them. Materialize it to see how "
        "things are now; it does so itself every quarter of an hour."
    ),
    automation_condition=dg.AutomationCondition.on_cron("*/15 * * * *") | _NEVER_LOOKED_AT,
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=2), warn_window=timedelta(hours=1)
    ),
    check_specs=[
        dg.AssetCheckSpec(check.name, asset=HEALTH, description=check.description)
        for check in CHECKS
    ],
)
def health(line: dg.ResourceParam[Line]) -> Iterator[dg.MaterializeResult[None]]:
    """Read the ledger and check its sums."""
    found = scope_sums(line)
    needs = in_need(line, attention.MAX_ROWS + 1)
    totals = {state: sum(scope.states.get(state, 0) for scope in found) for state in DocumentState}
    yield dg.MaterializeResult(
        metadata={
            **{name: dg.MetadataValue.md(text) for name, text in attention.needs(needs).items()},
            "scopes": len(found),
            "documents": sum(scope.documents for scope in found),
            **{f"documents_{state.value}": count for state, count in totals.items() if count},
            "current_passages": sum(scope.current_passages for scope in found),
            "backlog": totals[DocumentState.PENDING],
            "oldest_backlog_s": max((scope.backlog_age_s for scope in found), default=0.0),
            "by_scope": _table(found),
        },
        check_results=[_result(check, found) for check in CHECKS],
    )


@dg.asset(
    key=TERMS,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    deps=[HEALTH],
    description=(
        "Term statistics that weigh words in a search, counted anew where a scope grew or shrank."
    ),
    automation_condition=dg.AutomationCondition.on_cron("7 * * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=6), warn_window=timedelta(hours=3)
    ),
)
def terms(line: dg.ResourceParam[Line]) -> dg.MaterializeResult[None]:
    """Count what is due."""
    rows = refresh_statistics(line)
    return dg.MaterializeResult(
        metadata={
            "scopes": len(rows),
            "terms": sum(int(row["terms"]) for row in rows),
            "by_scope": table(
                dict.fromkeys(TERM_COLUMNS, "string"),
                ({name: str(value) for name, value in row.items()} for row in rows),
            ),
        }
    )


def _result(check: ScopeCheck, found: Sequence[ScopeSums]) -> dg.AssetCheckResult:
    rows = problems(check, found)
    metadata: dict[str, Any] = {"scopes": len(found), "problems": len(rows)}
    if rows:
        columns = dict.fromkeys((*rows[0], "do"), "string")
        metadata["where"] = table(columns, ({**row, "do": check.next_step} for row in rows))
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=not rows,
        severity=dg.AssetCheckSeverity[check.severity],
        metadata=metadata,
    )


def _table(found: Sequence[ScopeSums]) -> dg.TableMetadataValue:
    named = (DocumentState.INDEXED, DocumentState.QUARANTINED, DocumentState.FAILED)
    states = [state.value for state in named]
    numbers = ("documents", *states, "current_passages", "backlog", "backlog_age_s")
    return table(
        {"scope": "string", **dict.fromkeys(numbers, "int")},
        (
            {
                "scope": scope.scope,
                "documents": scope.documents,
                **{state: scope.states.get(DocumentState(state), 0) for state in states},
                "current_passages": scope.current_passages,
                "backlog": scope.states.get(DocumentState.PENDING, 0),
                "backlog_age_s": round(scope.backlog_age_s),
            }
            for scope in found
        ),
    )


def automation_sensor() -> dg.AutomationConditionSensorDefinition:
    """Evaluates the group's assets and no document: 100,000 partitions cost tens of seconds."""
    return dg.AutomationConditionSensorDefinition(
        name="scope_automation",
        target=dg.AssetSelection.groups(GROUP_NAME),
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Refreshes the assets about scopes on their schedules.",
    )
