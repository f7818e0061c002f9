"""The asset that gives large scopes a vector index of their own, and takes it when they shrink.

Belongs here: when it runs and what an operator sees. What does not: which scopes need one
(`kb_resources.store.ann`). Building one takes the owner's connection; a pipeline that holds only
its own role says so, and `kb db indexes` does the work where the owner's is set.
"""

from datetime import timedelta

import dagster as dg

from kb_assets.scopes import GROUP_NAME, OWNERS, TERMS
from kb_resources.bindings.metadata import table
from kb_resources.errors import PolicyError
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import maintain_indexes

INDEXES = dg.AssetKey(["kb_scopes", "vector_indexes"])


@dg.asset(
    key=INDEXES,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres", "pgvector"},
    code_version="1",
    deps=[TERMS],
    description=(
        "HNSW indexes of scopes with 50,000 vectors and more; smaller ones are scanned exactly. "
        "Made and dropped while searches go on."
    ),
    automation_condition=dg.AutomationCondition.on_cron("23 3 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=3), warn_window=timedelta(days=2)
    ),
)
def vector_indexes(line: dg.ResourceParam[Line]) -> dg.MaterializeResult[None]:
    """Create, rebuild and drop what has to be."""
    try:
        changes = maintain_indexes(line)
    except PolicyError as refused:
        return dg.MaterializeResult(
            metadata={"changed": 0, "left_to": f"{refused} Run kb db indexes there."}
        )
    return dg.MaterializeResult(
        metadata={
            "changed": len(changes),
            "changes": table(
                {"index": "string", "action": "string", "vectors": "int"},
                (
                    {"index": item.name, "action": item.action, "vectors": item.vectors}
                    for item in changes
                ),
            ),
        }
    )
