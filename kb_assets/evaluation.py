"""The asset that asks labelled questions and shows how well search finds their answers.

Belongs here: which question files, what an operator sees, the check that blocks. What does not:
asking and judging (`kb_resources.stages.evaluation`). Files lie in `<KB_HOME>/evaluation`, named
`<scope>.jsonl` or `<scope>.<name>.jsonl`. Numeric metadata are plotted over time by Dagster,
https://docs.dagster.io/guides/build/assets/metadata-and-tags.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from kb_assets.scopes import GROUP_NAME, OWNERS, TERMS
from kb_checks.evaluation import DESCRIPTION, NAME, SetOutcome, broken, outcome
from kb_resources.errors import InputError, NotFound
from kb_resources.evaluate import keeping, read_questions
from kb_resources.settings import load_settings
from kb_resources.stages.evaluation import Ran, Wanted, question_sets, run_scope
from kb_resources.stages.line import Line

EVALUATION = dg.AssetKey(["kb_scopes", "evaluation"])
ACTOR = "dagster"
MAX_ROWS = 500
"""Question rows in one event at most: the event log is read as a whole."""


@dg.asset(
    key=EVALUATION,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    deps=[TERMS],
    description=(
        "Labelled questions asked of their scopes: nDCG@10, ranks and honesty by question file, "
        "with a row per question. Files: <KB_HOME>/evaluation/<scope>.jsonl."
    ),
    automation_condition=dg.AutomationCondition.on_cron("11 4 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=7), warn_window=timedelta(days=2)
    ),
    check_specs=[dg.AssetCheckSpec(NAME, asset=EVALUATION, description=DESCRIPTION, blocking=True)],
)
def evaluation(line: dg.ResourceParam[Line]) -> Iterator[dg.MaterializeResult[None]]:
    """Ask every file's questions; the check holds each run against the accepted one."""
    ran, outcomes = ask_all(line, question_folder())
    yield dg.MaterializeResult(metadata=metadata(ran), check_results=[check(outcomes)])


def question_folder() -> Path:
    """Where question files are looked for."""
    return load_settings().home / "evaluation"


def ask_all(line: Line, folder: Path) -> tuple[list[Ran], list[SetOutcome]]:
    """One run per question file; a file that is wrong, or asks a scope that is not there, fails."""
    runs, outcomes = [], []
    for scope, files in question_sets(folder).items():
        for file in files:
            try:
                questions = read_questions(file)
                ran = run_scope(line.capabilities, scope, questions, Wanted(file.name, ACTOR))
            except (InputError, NotFound) as error:
                outcomes.append(broken(scope, file.name, str(error)))
                continue
            runs.append(ran)
            outcomes.append(_judged(line, scope, file.name, ran))
    return runs, outcomes


def _judged(line: Line, scope: str, name: str, ran: Ran) -> SetOutcome:
    with line.capabilities.database.transaction("pipeline") as conn:
        held = keeping.accepted(conn, scope, name)
        accepted = None if held is None else (held.run_id, keeping.judged(conn, held.run_id))
    return outcome(scope, name, ran.kept.run_id, ran.made.judged, accepted)


def metadata(runs: Sequence[Ran]) -> dict[str, Any]:
    """Numbers for plots, over all files and by file, and a row per question."""
    shown: dict[str, Any] = {
        "files": len(runs),
        "questions": sum(len(ran.made.judged) for ran in runs),
    }
    for ran in runs:
        figure = ran.made.overall
        name = ran.kept.name.removesuffix(".jsonl").replace(".", "_")
        shown |= {f"{name}_{measure}": round(value, 4) for measure, value in figure.means.items()}
        if figure.nothing is not None:
            shown[f"{name}_nothing"] = round(figure.nothing, 4)
    if runs:
        shown["by_group"] = _groups(runs)
        shown["by_question"] = _questions(runs)
    return shown


def _groups(runs: Sequence[Ran]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "file": ran.kept.name,
                    "group": group,
                    "questions": figure.questions,
                    **{name: round(figure.means.get(name, 0.0), 4) for name in _MEASURES},
                    "interval": _interval(figure.intervals.get("ndcg_10")),
                }
            )
            for ran in runs
            for group, figure in ran.made.figures.items()
        ][:MAX_ROWS]
    )


def _questions(runs: Sequence[Ran]) -> dg.TableMetadataValue:
    """Worst first, so that what the limit leaves out needs no look."""
    rows = [(ran.kept.name, item) for ran in runs for item in ran.made.judged]
    rows.sort(key=lambda row: (row[1].answerable and row[1].ndcg, row[0], row[1].id))
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord(
                {
                    "file": name,
                    "question": item.id,
                    "language": item.language,
                    "slice": item.slice,
                    "ndcg_10": round(item.ndcg, 4),
                    "first": item.first or 0,
                    "nothing": item.nothing,
                    "top": ", ".join(item.top),
                }
            )
            for name, item in rows[:MAX_ROWS]
        ]
    )


def check(outcomes: Sequence[SetOutcome]) -> dg.AssetCheckResult:
    """Passed when every file's run may stand; the table says why, file by file."""
    found: dict[str, Any] = {
        "files": len(outcomes),
        "worse": sum(not item.verdict.passed for item in outcomes),
    }
    for item in outcomes:
        if item.verdict.comparison is not None:
            name = item.name.removesuffix(".jsonl").replace(".", "_")
            change = item.verdict.comparison.differences["ndcg_10"]
            found[f"{name}_ndcg_10_change"] = round(change.mean, 4)
    if outcomes:
        found["by_file"] = dg.MetadataValue.table(
            records=[dg.TableRecord({**item.row}) for item in outcomes[:MAX_ROWS]]
        )
    return dg.AssetCheckResult(
        check_name=NAME,
        passed=all(item.verdict.passed for item in outcomes),
        severity=dg.AssetCheckSeverity.ERROR,
        metadata=found,
    )


def _interval(spread: tuple[float, float] | None) -> str:
    return "" if spread is None else f"{spread[0]:.3f} to {spread[1]:.3f}"


_MEASURES = ("ndcg_10", "r_1", "r_5", "r_100", "mrr")
