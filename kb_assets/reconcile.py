"""The asset `kb_scopes/reconciliation`: once a night, do the stores agree?

Belongs here: the schedule's rhythm, Dagster's own partitions, what operators see. What does not:
comparing stores (`kb_resources.stages.reconcile`).
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial

import dagster as dg

from kb_assets.forget import forget_here
from kb_assets.scopes import GROUP_NAME, OWNERS
from kb_resources.bindings.metadata import table
from kb_resources.bindings.partitions import add_documents
from kb_resources.bindings.partitions import documents as partitions_def
from kb_resources.compose_erasing import eraser, export_target
from kb_resources.errors import KbError
from kb_resources.model import DocumentKey
from kb_resources.settings import Settings, load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.reconcile import (
    Difference,
    finish_erasures,
    partition_keys,
    reconcile_stores,
)
from kb_resources.store.documents import list_scopes

RECONCILIATION = dg.AssetKey(["kb_scopes", "reconciliation"])
CHECK = "stores_agree"


@dg.asset(
    key=RECONCILIATION,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    description=(
        "Blobs against the ledger, the ledger against the retrieval tables, documents against "
        "partitions, the git export against what is published; erasures that a crash cut short "
        "are finished. What can be mended is; the rest is listed with what to do."
    ),
    automation_condition=dg.AutomationCondition.on_cron("40 3 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=3), warn_window=timedelta(days=2)
    ),
    check_specs=[
        dg.AssetCheckSpec(
            CHECK, asset=RECONCILIATION, description="No difference is left that needs a person."
        )
    ],
)
def reconciliation(
    context: dg.AssetExecutionContext, line: dg.ResourceParam[Line]
) -> Iterator[dg.MaterializeResult[None]]:
    """Compare all stores once; erasures and the git export are brought to their end first."""
    settings = load_settings()
    found = finish_erasures(
        eraser(settings, line, dagster=partial(forget_here, settings), dagster_here=True)
    )
    found += export_everything(settings, line)
    found += reconcile_stores(line.capabilities)
    found += reconcile_partitions(context.instance, lambda: partition_keys(line.capabilities))
    left = [item for item in found if not item.repaired]
    kinds = sorted({item.kind for item in found})
    yield dg.MaterializeResult(
        metadata={
            "differences": len(found),
            "repaired": len(found) - len(left),
            "left": len(left),
            **{kind: sum(item.kind == kind for item in found) for kind in kinds},
            "which": _table(found),
        },
        check_results=[
            dg.AssetCheckResult(
                check_name=CHECK,
                passed=not left,
                severity=dg.AssetCheckSeverity.ERROR,
                metadata={"left": len(left), "which": _table(left)},
            )
        ],
    )


def export_everything(settings: Settings, line: Line) -> list[Difference]:
    """Bring the git export, where it is on, in line with what no batch was about."""
    target = export_target(settings)
    if target is None:
        return []
    from kb_resources.stages.export import export_git

    with line.capabilities.database.transaction("pipeline") as conn:
        scopes = [row["name"] for row in list_scopes(conn) if target.takes(row["name"])]
    try:
        done = export_git(line.capabilities, target.folder, scopes)
    except KbError as error:
        step = f"{error.message} {error.next_step}".strip()
        return [Difference("git_export", str(target.folder), False, step)]
    return [Difference("git_export", done.commit, True)] if done.commit else []


def reconcile_partitions(
    instance: dg.DagsterInstance, keys: Callable[[], Sequence[DocumentKey]]
) -> list[Difference]:
    """Make Dagster's partitions those of the ledger's documents.

    Args:
        instance: whose partitions.
        keys: gives the documents. Asked after Dagster: a document is in the ledger before it is a
            partition, so that one which comes in between is not taken for a stray one.
    """
    known = set(instance.get_dynamic_partitions(str(partitions_def.name)))
    wanted = {str(key): key for key in keys()}
    missing = [key for name, key in wanted.items() if name not in known]
    add_documents(instance, missing)
    stray = sorted(known - wanted.keys())
    for name in stray:
        instance.delete_dynamic_partition(str(partitions_def.name), name)
    return [
        *(Difference("missing_partition", str(key), True) for key in missing),
        *(Difference("stray_partition", name, True) for name in stray),
    ]


def _table(found: Sequence[Difference]) -> dg.TableMetadataValue:
    return table(
        dict.fromkeys(("kind", "subject", "repaired", "do"), "string"),
        (
            {
                "kind": item.kind,
                "subject": item.subject,
                "repaired": "yes" if item.repaired else "no",
                "do": item.next_step,
            }
            for item in found
        ),
    )
