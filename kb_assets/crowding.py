"""The asset `kb_scopes/crowding`: once a night, do new passages crowd known questions' answers?

Belongs here: when it is looked at, what an operator sees, who is told. What does not: asking and
judging (`kb_resources.stages.crowding`). No text of a document or question enters an event.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from kb_assets.alerts import send
from kb_assets.evaluation import EVALUATION, question_folder
from kb_assets.scopes import GROUP_NAME, OWNERS
from kb_resources.bindings.metadata import table
from kb_resources.settings import load_settings
from kb_resources.stages.crowding import Crowding, measure
from kb_resources.stages.line import Line
from kb_resources.store.documents import list_scopes

CROWDING = dg.AssetKey(["kb_scopes", "crowding"])
CHECK = "nothing_new_crowds"
NEW_FOR = timedelta(days=1, hours=2)
"""A night and a little more, so that nothing falls between two looks."""
MAX_ROWS = 200


@dg.asset(
    key=CROWDING,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    deps=[EVALUATION],
    description=(
        "Questions that could be answered before, asked again: new passages that fill a list, or "
        "stand in many, are what planted documents look like. `kb documents remove --source` or "
        "`--batch` takes all of them out of search."
    ),
    automation_condition=dg.AutomationCondition.on_cron("27 4 * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=7), warn_window=timedelta(days=2)
    ),
    check_specs=[
        dg.AssetCheckSpec(
            CHECK, asset=CROWDING, description="No new passage is in too many answers."
        )
    ],
)
def crowding(
    context: dg.AssetExecutionContext, line: dg.ResourceParam[Line]
) -> Iterator[dg.MaterializeResult[None]]:
    """Look at every scope; whoever is to be alerted hears of what stands out."""
    with line.capabilities.database.transaction("pipeline") as conn:
        scopes = [str(row["name"]) for row in list_scopes(conn)]
    since = datetime.now(UTC) - NEW_FOR
    found = [
        measure(line.capabilities, scope, since=since, folder=question_folder()) for scope in scopes
    ]
    alarmed = [each for each in found if each.alarms]
    for each in alarmed:
        facts = {
            "scope": each.scope,
            "alarms": str(len(each.alarms)),
            "look": f"kb eval crowding --scope {each.scope}",
        }
        for problem in send(load_settings(), "New passages crowd the answers", facts):
            context.log.warning(f"An alert was not delivered: {problem}")
    yield dg.MaterializeResult(
        metadata={
            "questions": sum(each.questions for each in found),
            "new_passages": sum(each.new_passages for each in found),
            "alarms": sum(len(each.alarms) for each in found),
            "which": _table(found),
        },
        check_results=[
            dg.AssetCheckResult(
                check_name=CHECK,
                passed=not alarmed,
                severity=dg.AssetCheckSeverity.ERROR,
                metadata={"which": _table(found)},
            )
        ],
    )


def _table(found: Sequence[Crowding]) -> dg.TableMetadataValue:
    rows = [
        {
            "scope": each.scope,
            "kind": alarm.kind,
            "question": alarm.question,
            "documents": ", ".join(alarm.documents),
            "from": ", ".join(alarm.origins),
            "count": f"{alarm.count} of {alarm.of}",
            "do": "Look at them; kb documents remove --source … takes them out of search.",
        }
        for each in found
        for alarm in each.alarms
    ]
    columns = ("scope", "kind", "question", "documents", "from", "count", "do")
    return table(dict.fromkeys(columns, "string"), rows[:MAX_ROWS])
