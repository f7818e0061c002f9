"""What a step takes: computing time of its processes and tokens, kept in the ledger and on the run.

Belongs here: measuring around a step and showing the sums. What does not: prices and rows
(`kb_resources.stages.usage`). Computing time is what the operating system counted for this process
and all it started, https://docs.python.org/3/library/resource.html.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg
import psutil

from kb_resources.model import DocumentKey
from kb_resources.settings import load_settings
from kb_resources.stages import usage
from kb_resources.stages.line import Line

COST_TAG = "kb/cost"
"""Tag of a run with what it took so far."""


def cpu_seconds() -> float:
    """Computing time of this process and of all it started, ended ones included, in seconds."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # it ended just now: its parent has the time
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@dataclass(slots=True)
class Meter:
    """Started before a step's work, read after it."""

    line: Line
    cpu_s: float = field(default_factory=cpu_seconds)
    tokens: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = usage.tokens_in(self.line.capabilities.counters or {})

    def read(
        self, context: dg.OpExecutionContext, stage: str, keys: Sequence[DocumentKey]
    ) -> dict[str, float]:
        """Keep what the step took and write the run's sums onto the run.

        Returns:
            Metadata of the step: `documents`, `cpu_s`, `tokens`.
        """
        counted = usage.tokens_in(self.line.capabilities.counters or {})
        step = usage.Step(
            run_id=context.run_id,
            cause=context.run.tags.get("kb/cause", "by hand"),
            stage=stage,
            documents=Counter(key.scope for key in keys),
            cpu_s=max(0.0, cpu_seconds() - self.cpu_s),
            tokens={
                model: count - self.tokens.get(model, 0)
                for model, count in counted.items()
                if count > self.tokens.get(model, 0)
            },
        )
        settings = load_settings()
        sums = usage.record(self.line, step, usage.Prices.read(settings.prices, settings.currency))
        context.instance.add_run_tags(context.run_id, {COST_TAG: usage.said(sums)})
        return {
            "documents": float(len(keys)),
            "cpu_s": round(step.cpu_s, 3),
            "tokens": float(sum(step.tokens.values())),
        }
