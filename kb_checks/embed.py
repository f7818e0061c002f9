"""Checks after embed: one unit vector per distinct chunk text, by one model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kb_checks import schemas
from kb_checks.gate import cleared
from kb_checks.model import Case, Check, Outcome, numbers_of
from kb_resources.model import Stage


def _vectors(
    columns: Collection[str], numbers: Callable[[Case], Mapping[str, float]]
) -> Callable[[Sequence[Case]], Sequence[Outcome | None]]:
    """Hold some columns of the vectors' schema; each of the checks below is about its own."""

    def judge(cases: Sequence[Case]) -> Sequence[Outcome | None]:
        embedded = [case for case in cases if not case.report.refused]
        rows = [{"document": str(case.key), **case.facts["vectors"]} for case in embedded]
        found = schemas.problems_by_document(schemas.vectors(), rows)
        return [
            None if case.report.refused else _outcome(case, found.get(str(case.key), ()))
            for case in cases
        ]

    def _outcome(case: Case, problems: Sequence[Mapping[str, str]]) -> Outcome:
        mine = [row for row in problems if row["what"].split(":")[0] in columns]
        return Outcome(passed=not mine, numbers=numbers(case), problems=mine)

    return judge


def _embedded(case: Case) -> dict[str, float]:
    return numbers_of(case, "embedded")


def _worst_norm_error(case: Case) -> dict[str, float]:
    return {"worst_norm_error": float(case.facts["vectors"]["worst_norm_error"])}


def _models(case: Case) -> dict[str, float]:
    return {"models": float(case.facts["vectors"]["models"])}


CHECKS = (
    cleared(Stage.EMBED),
    Check(
        stage=Stage.EMBED,
        name="embedded_once",
        description=(
            "Every chunk has exactly one vector: computed now, or carried over from the same text "
            "in the scope."
        ),
        next_step="Run the document again from embed.",
        severity="ERROR",
        judge=_vectors(("missing", "doubled"), lambda case: numbers_of(case, "embedded")),
    ),
    Check(
        stage=Stage.EMBED,
        name="unit_norm",
        description="Every vector has length 1 up to half-precision rounding.",
        next_step="Run `kb models verify`; embed the document again.",
        severity="ERROR",
        judge=_vectors(("worst_norm_error",), _worst_norm_error),
    ),
    Check(
        stage=Stage.EMBED,
        name="one_model",
        description="All vectors of the version come from one model: weights, prefixes and form.",
        next_step="Embed the scope again with the model it is set to.",
        severity="ERROR",
        judge=_vectors(("models",), _models),
    ),
)
