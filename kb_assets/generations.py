"""The asset about generations: which model each scope is searched by, how far its shadow is.

Belongs here: when it is looked at and what an operator sees. What does not: filling (`reembed`),
judging (`kb_checks.generation`). Asset checks: https://docs.dagster.io/guides/test/asset-checks.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from kb_assets.evaluation import question_folder
from kb_assets.scopes import GROUP_NAME, HEALTH, OWNERS
from kb_checks.generation import CHECKS, GenerationCheck, problems
from kb_resources.bindings.launchpad import launchpad
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.reembed import measure_full
from kb_resources.stages.reembed_view import Status, status
from kb_resources.stages.swap_quality import Quality

GENERATIONS = dg.AssetKey(["kb_scopes", "generations"])
MAX_ROWS = 200


@dg.asset(
    key=GENERATIONS,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres", "pgvector"},
    code_version="1",
    deps=[HEALTH],
    description=(
        "The embedding model each scope is searched by, and the one whose vectors are filled or "
        "kept beside it. A full shadow is measured against the live vectors before `kb reembed "
        "swap`. The links under `start` open the job that begins a shadow."
    ),
    automation_condition=dg.AutomationCondition.on_cron("41 * * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=6), warn_window=timedelta(hours=3)
    ),
    check_specs=[
        dg.AssetCheckSpec(check.name, asset=GENERATIONS, description=check.description)
        for check in CHECKS
    ],
)
def generations(line: dg.ResourceParam[Line]) -> Iterator[dg.MaterializeResult[None]]:
    """Read where the scopes stand, and measure what is full."""
    found = status(line.capabilities)
    measured = measure_full(line.capabilities, folder=question_folder())
    beside = [each for each in found if each.beside_is == "shadow"]
    yield dg.MaterializeResult(
        metadata={
            "start": dg.MetadataValue.md(starts(found, ready_models())),
            "scopes": len(found),
            "shadows": len(beside),
            "passages_to_fill": sum(each.total - each.done for each in beside),
            "by_scope": _table(found, measured),
        },
        check_results=[_result(check, found, measured) for check in CHECKS],
    )


def ready_models() -> list[str]:
    """Names of the embedding models that can be used here without preparing anything."""
    from kb_resources import embed

    ready = {prepared.identity.name for prepared in embed.installed(load_settings().models_path)}
    return sorted(ready | {load_settings().model})


def starts(found: Sequence[Status], models: Sequence[str]) -> str:
    """Markdown: a link for each model that a scope could be filled with now."""
    lines = []
    for each in found[:MAX_ROWS]:
        others = [name for name in models if name != each.live.partition("@")[0]]
        links = [
            f"[{name}]({launchpad('kb_reembed', {'scope': each.scope, 'model': name})})"
            for name in others
            if each.beside is None
        ]
        lines.append(f"{each.scope}: {', '.join(links) or each.next_step or 'no other model here'}")
    return "  \n".join(lines) or "No scope has vectors yet."


def _result(
    check: GenerationCheck, found: Sequence[Status], measured: Mapping[str, Quality]
) -> dg.AssetCheckResult:
    rows = problems(check, found, measured)
    metadata: dict[str, Any] = {"scopes": len(found), "problems": len(rows)}
    if rows:
        metadata["where"] = dg.MetadataValue.table(
            records=[dg.TableRecord({**row, "do": check.next_step}) for row in rows[:MAX_ROWS]]
        )
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=not rows,
        severity=dg.AssetCheckSeverity[check.severity],
        metadata=metadata,
    )


def _table(found: Sequence[Status], measured: Mapping[str, Quality]) -> dg.TableMetadataValue:
    records = []
    for each in found[:MAX_ROWS]:
        quality = measured.get(each.scope)
        records.append(
            dg.TableRecord(
                {
                    "scope": each.scope,
                    "live": each.live,
                    "beside": each.beside or "",
                    "is": each.beside_is or "",
                    "done": each.done,
                    "total": each.total,
                    "failed": len(each.failed),
                    "eta_s": round(each.eta_s) if each.eta_s is not None else -1,
                    "overlap": round(quality.overlap, 3) if quality else -1.0,
                    "recall": round(quality.recall, 3) if quality else -1.0,
                    "next": each.next_step,
                }
            )
        )
    columns = {"done": "int", "total": "int", "failed": "int", "eta_s": "int"}
    columns |= {"overlap": "float", "recall": "float"}
    names = ("scope", "live", "beside", "is", *columns, "next")
    return dg.MetadataValue.table(
        records=records,
        schema=dg.TableSchema(
            columns=[dg.TableColumn(name, columns.get(name, "string")) for name in names]
        ),
    )
