"""All checks by stage, and the way to ask them.

Belongs here: the list. A new check goes into its stage's module.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kb_checks import (
    acquire,
    chunk,
    convert,
    embed,
    enrich,
    index,
    language,
    parse,
    scan,
    supersede,
)
from kb_checks.gate import CLEARED
from kb_checks.model import Case, Check, Outcome
from kb_resources.model import AnyStage, ModelStage, Stage

CHECKS: dict[Stage, tuple[Check, ...]] = {
    Stage.ACQUIRE: acquire.CHECKS,
    Stage.PARSE: parse.CHECKS,
    Stage.LANGUAGE: language.CHECKS,
    Stage.SCAN: scan.CHECKS,
    Stage.CHUNK: chunk.CHECKS,
    Stage.EMBED: embed.CHECKS,
    Stage.INDEX: index.CHECKS,
    Stage.SUPERSEDE: supersede.CHECKS,
}
MODEL_CHECKS: dict[ModelStage, tuple[Check, ...]] = {
    ModelStage.CONVERT: convert.CHECKS,
    ModelStage.ENRICH: enrich.CHECKS,
}
ALL_CHECKS: dict[AnyStage, tuple[Check, ...]] = dict([*CHECKS.items(), *MODEL_CHECKS.items()])
"""Those of the stages too that are off by default."""


def ask(
    stage: AnyStage, cases: Sequence[Case], was_red: Collection[str] = ()
) -> Iterator[tuple[Check, Case, Outcome]]:
    """Every check of a stage over a group of documents; questions that do not apply give nothing.

    A passed `cleared` is said only where it takes back a red one: said for every document at each
    of four stages it would be a sixth of all that Dagster stores.

    Args:
        stage: which stage's checks.
        cases: documents that went through it, answered together.
        was_red: partition keys whose `cleared` check of this stage failed the last time.
    """
    for check in ALL_CHECKS[stage]:
        for case, outcome in zip(cases, check.judge(cases), strict=True):
            if outcome is None:
                continue
            if check.name != CLEARED or not outcome.passed or str(case.key) in was_red:
                yield check, case, outcome
