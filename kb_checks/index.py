"""Checks after index: the retrieval tables hold this version completely, and nothing uncleared."""

from __future__ import annotations

from collections.abc import Sequence

from kb_checks import schemas
from kb_checks.gate import cleared
from kb_checks.model import Case, Check, Outcome, each
from kb_resources.model import Stage


def _only_cleared_and_current(case: Case) -> Outcome | None:
    if case.report.refused:
        return None
    index = case.facts["index"]
    problems = [
        {"what": text, "where": f"version {case.report.version}"}
        for wrong, text in (
            (index["uncleared"], "published without a clean verdict"),
            (not case.facts["current"], "published, but not the version that holds now"),
            (not index["passages"], "no passage was published"),
        )
        if wrong
    ]
    return Outcome(
        passed=not problems,
        numbers={"uncleared": float(index["uncleared"])},
        problems=problems,
    )


def _schema(cases: Sequence[Case]) -> Sequence[Outcome | None]:
    rows = [
        {
            "document": str(case.key),
            "without_lexical_row": index["passages"] - index["lexical"],
            "without_vector": index["passages"] - index["vectors"],
            "models": index["models"],
            "worst_norm_error": float(index["worst_norm_error"]),
        }
        for case in cases
        if not case.report.refused
        for index in (case.facts["index"],)
    ]
    found = schemas.problems_by_document(schemas.passages(), rows)
    return [
        None
        if case.report.refused
        else Outcome(
            passed=str(case.key) not in found,
            numbers={"worst_norm_error": float(case.facts["index"]["worst_norm_error"])},
            problems=found.get(str(case.key), ()),
        )
        for case in cases
    ]


CHECKS = (
    cleared(Stage.INDEX),
    Check(
        stage=Stage.INDEX,
        name="only_cleared_and_current",
        description=(
            "The passages published for the document belong to a cleared version, and that version "
            "is the one valid now."
        ),
        next_step="Take the document out of search with `kb remove` and report it.",
        severity="ERROR",
        judge=each(_only_cleared_and_current),
    ),
    Check(
        stage=Stage.INDEX,
        name="schema",
        description=(
            "Every published passage has its lexical row and its unit vector by one model."
        ),
        next_step="Run the document again from embed.",
        severity="ERROR",
        judge=_schema,
    ),
)
