"""Checks as Dagster shows them: specs for the definitions, evaluations for the event log.

Belongs here: turning `model` into Dagster's types. One evaluation per document and check, each with
numbers for plots and, when it fails, a table of what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import dagster as dg

from kb_checks.model import Case, Check, Outcome
from kb_checks.registry import ALL_CHECKS
from kb_resources.bindings.events import document_check
from kb_resources.model import AnyStage

MAX_ROWS = 50
"""Problem rows in one event at most: the event log is read as a whole."""


def asset_key(stage: AnyStage) -> dg.AssetKey:
    """`kb/<stage>`."""
    return dg.AssetKey(["kb", stage.value])


def specs(
    partitions_def: dg.PartitionsDefinition[str], stages: Collection[AnyStage]
) -> Iterator[dg.AssetCheckSpec]:
    """Specs of the checks of some stages, partitioned by document."""
    for stage in stages:
        for check in ALL_CHECKS[stage]:
            yield document_check(
                check.name,
                asset_key=asset_key(stage),
                description=f"{check.description}\n\nWhen it fails: {check.next_step}",
                partitions_def=partitions_def,
            )


def evaluation(check: Check, case: Case, outcome: Outcome) -> dg.AssetCheckEvaluation:
    """One document's answer as an event."""
    metadata: dict[str, dg.MetadataValue[Any]] = {
        name: dg.MetadataValue.float(float(value)) for name, value in outcome.numbers.items()
    }
    if not outcome.passed:
        shown = outcome.problems[:MAX_ROWS]
        metadata["problems"] = dg.MetadataValue.int(len(outcome.problems))
        metadata["documents"] = dg.MetadataValue.table(
            records=[
                dg.TableRecord(
                    {
                        "document": str(case.key),
                        "what": row["what"],
                        "where": row["where"],
                        "do": check.next_step,
                    }
                )
                for row in shown
            ],
            schema=_SCHEMA,
        )
    return dg.AssetCheckEvaluation(
        asset_key=asset_key(check.stage),
        check_name=check.name,
        passed=outcome.passed,
        partition=str(case.key),
        severity=dg.AssetCheckSeverity[check.severity],
        description=outcome.note or None,
        blocking=False,
        metadata=metadata,
    )


_SCHEMA = dg.TableSchema(
    columns=[
        dg.TableColumn("document", "string", description="Partition key, scope:document."),
        dg.TableColumn("what", "string", description="What is wrong."),
        dg.TableColumn("where", "string", description="Where in the document."),
        dg.TableColumn("do", "string", description="What to do about it."),
    ]
)
