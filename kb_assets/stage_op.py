"""One stage as an op: the body that all share, and what makes each its own.

Belongs here: running a stage over the step's documents and telling Dagster about each of them.
An ordinary output would mark every partition of a run; so the op records one explicit event per
document, yields `done`, and raises for broken documents only after that (docs/adr/0003).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from kb_assets.doors import Door, asked_for, door_of, keys_at
from kb_assets.failures import raise_for, retry_where_it_may_help
from kb_assets.metering import Meter
from kb_checks.gate import CLEARED, GATED
from kb_checks.model import Case
from kb_checks.registry import ALL_CHECKS, ask
from kb_checks.reporting import asset_key, evaluation
from kb_resources.bindings import events, metadata
from kb_resources.bindings.line import BatchSelection
from kb_resources.bindings.partitions import add_documents
from kb_resources.model import AnyStage, DocumentKey, Stage, StageReport
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.orchestration import facts_of, standing
from kb_resources.tracing import span

GROUP = 50
"""Documents whose checks are evaluated together: pandera costs per table, not per row."""


@dataclass(frozen=True, slots=True)
class StageAsset:
    """What makes a stage's asset its own.

    Attributes:
        stage: which stage.
        description: Markdown for the asset's page.
        kinds: badges in the graph, at most three.
        code_version: raised with every change that alters the stage's results.
        pool: concurrency pool of the step, or None.
        metadata: definition metadata.
        then: done once the stage is through with the run's documents; what it raises fails the
            step, and undoes nothing.
    """

    stage: AnyStage
    description: str
    kinds: frozenset[str]
    code_version: str = "1"
    pool: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    then: Callable[[Line, Sequence[DocumentKey]], None] | None = None


def check_output(name: str) -> str:
    """Output of the op that stands for a check."""
    return f"check_{name}"


def stage_op(asset: StageAsset) -> dg.OpDefinition:
    """The op of one stage.

    Its outputs carry nothing: `asset` and the checks are never yielded, they only give the graph
    its assets and checks; `done` chains the steps.
    """
    stage = asset.stage

    @dg.op(
        name=stage.value,
        description=asset.description,
        ins={} if stage is Stage.ACQUIRE else {"after": dg.In(dg.Nothing)},
        out={
            "asset": dg.Out(dg.Nothing, is_required=False),
            "done": dg.Out(dg.Nothing),
            **{
                check_output(check.name): dg.Out(dg.Nothing, is_required=False)
                for check in ALL_CHECKS[stage]
            },
        },
        pool=asset.pool,
        tags={"kb/stage": stage.value},
    )
    def run(
        context: dg.OpExecutionContext,
        line: dg.ResourceParam[Line],
        batch: dg.ResourceParam[BatchSelection],
        limits: dg.ResourceParam[Mapping[str, int]],
    ) -> Iterator[Any]:
        door = door_of(context, stage, batch)
        step = _Step(context, asset, door, line, limits)
        taken: dict[str, float] = {}
        if door.wanted:
            meter = Meter(line)
            try:
                keys = keys_at(context, door, stage, batch, line)
                with span(
                    f"kb.{stage.value}", on=load_settings().traces, kb__run_id=context.run_id
                ) as facts:
                    step.work(keys)
                    if door.is_asset_run and not door.first:
                        step.stand(set(asked_for(context, door, batch, line)) - set(keys))
                    facts |= {"kb.documents": len(keys), "kb.broken": len(step.broken)}
                taken = meter.read(context, stage.value, keys)
                if asset.then is not None:
                    asset.then(line, asked_for(context, door, batch, line))
            except Exception as error:  # noqa: BLE001 - raised below
                step.broken.append((None, error))
        retry_where_it_may_help(context, step.broken)
        if "done" in context.selected_output_names:
            yield dg.Output(None, "done", metadata=taken)
        raise_for(stage, step.broken, step.refused if step.alone else [])

    return run


class _Step:
    """One stage over the documents of one run."""

    def __init__(
        self,
        context: dg.OpExecutionContext,
        asset: StageAsset,
        door: Door,
        line: Line,
        limits: Mapping[str, int],
    ) -> None:
        self.context = context
        self.asset = asset
        self.door = door
        self.line = line
        self.limits = limits
        self.broken: list[tuple[DocumentKey | None, Exception]] = []
        self.refused: list[StageReport] = []
        self.alone = False
        self.recorder = events.Recorder(
            context.instance, context.run, context.get_step_execution_context().step.key
        )

    def work(self, keys: Sequence[DocumentKey]) -> None:
        """Run the stage and record its events, group by group."""
        stage, context = self.asset.stage, self.context
        self.alone = len(keys) == 1
        if self.door.first:
            events.keep_connections(context.instance)
        if self.door.first and not self.door.is_asset_run:
            add_documents(context.instance, keys)
        group: list[StageReport] = []
        try:
            for key, outcome in self._run(keys):
                if isinstance(outcome, StageReport):
                    group.append(outcome)
                else:
                    self._broke(key, outcome)
                if len(group) >= GROUP:
                    full, group = group, []
                    self._tell(full)
        finally:
            # Where a service goes away in the middle: the next try finds these done, and is silent.
            self._tell(group)
        context.log.info(
            f"{stage.value}: {len(keys)} documents, {len(self.refused)} refused, "
            f"{len(self.broken)} broken"
        )

    def stand(self, keys: Iterable[DocumentKey]) -> None:
        """Tell of documents that need nothing: to a backfill, a target without an event failed."""
        rest = sorted(keys, key=str)
        for start in range(0, len(rest), GROUP):
            self._tell(standing(self.line, self.asset.stage, rest[start : start + GROUP]))

    def _run(self, keys: Sequence[DocumentKey]) -> Iterator[tuple[DocumentKey, Any]]:
        ready: list[DocumentKey] = []
        for key in keys:
            if self.door.first and (missing := _not_ready(self.line, self.asset.stage, key)):
                yield key, missing
            else:
                ready.append(key)
        yield from self.line.run_stage(self.asset.stage, ready)

    def _tell(self, reports: Sequence[StageReport]) -> None:
        told = [r for r in reports if r.worked or r.refused or self.door.is_asset_run]
        cases = self._cases(told)
        self.refused += [case.report for case in cases if case.report.refused]
        self.recorder.materialized(
            [self._materialization(case) for case in cases if not case.report.refused]
        )
        self.recorder.evaluated(
            [evaluation(*answer) for answer in ask(self.asset.stage, cases, self._was_red(cases))]
        )

    def _cases(self, reports: Sequence[StageReport]) -> list[Case]:
        keys = [DocumentKey(report.scope, report.document_id) for report in reports]
        facts = facts_of(self.line, self.asset.stage, keys)
        return [
            Case(key=key, report=report, facts={**facts[key], **self.limits})
            for key, report in zip(keys, reports, strict=True)
            if key in facts  # erased meanwhile
        ]

    def _was_red(self, cases: Sequence[Case]) -> frozenset[str]:
        """Documents whose `cleared` check of this stage failed the last time it was asked."""
        if self.asset.stage not in GATED:
            return frozenset()
        key = dg.AssetCheckKey(asset_key(self.asset.stage), CLEARED)
        found = self.context.instance.event_log_storage.get_asset_check_partition_info(
            [key], partition_keys=[str(case.key) for case in cases]
        )
        return frozenset(
            str(item.partition_key)
            for item in found
            if item.latest_execution_status.value != "SUCCEEDED"
        )

    def _materialization(self, case: Case) -> dg.AssetMaterialization:
        return dg.AssetMaterialization(
            asset_key=asset_key(case.report.stage),
            partition=str(case.key),
            metadata=metadata.of_report(case.report, case.facts),
            tags={"dagster/code_version": self.asset.code_version},
        )

    def _broke(self, key: DocumentKey, error: Exception) -> None:
        self.broken.append((key, error))
        if not self.door.is_asset_run:
            self.recorder.planned(asset_key(self.asset.stage), [str(key)])


def _not_ready(line: Line, stage: AnyStage, key: DocumentKey) -> StageReport | None:
    """A refusal for a hand launch whose stage before has left nothing to work on.

    Behind the gate the stages refuse on their own, and say why.
    """
    if stage not in (Stage.PARSE, Stage.LANGUAGE, Stage.SCAN):
        return None
    facts = line.facts(Stage.PARSE, key)
    needs_text = stage is not Stage.PARSE
    if facts["version"] is not None and (not needs_text or "preview" in facts):
        return None
    missing = "no text" if facts["version"] is not None else "no version"
    return StageReport(
        stage=stage,
        scope=key.scope,
        document_id=key.document_id,
        version=facts["version"],
        worked=False,
        refused=True,
        reason=f"There is {missing} to work on ({facts['state']}). Run it from acquire.",
    )
