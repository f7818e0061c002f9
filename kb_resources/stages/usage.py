"""What runs cost: tokens and computing time with the prices of the settings, kept in the ledger.

Belongs here: prices, shares by scope, sums for people. What does not: measuring (the orchestrator
does, around its steps) and rows (`store.usage`). Tokens are counted where texts go to a model
(`Capabilities.count`), under names that begin with `TOKENS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kb_resources.model import DocumentState
from kb_resources.stages.capabilities import TOKENS
from kb_resources.stages.line import Line
from kb_resources.store import usage
from kb_resources.store.usage import InNeed, UsageRow

CPU = "cpu"
"""Name of the price of an hour of computing."""
IN_NEED = (
    DocumentState.FAILED,
    DocumentState.QUARANTINED,
    DocumentState.NEEDS_OCR,
    DocumentState.CORRUPT,
    DocumentState.ENCRYPTED,
    DocumentState.TOO_LARGE,
    DocumentState.UNSUPPORTED,
    DocumentState.EMPTY,
    DocumentState.LANGUAGE_REFUSED,
    DocumentState.BLOCKED,
)
"""States in which a document waits for somebody, the most urgent first."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in a currency."""

    amount: float
    currency: str


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of models and of computing.

    Attributes:
        by_name: money for a million tokens, in and out, by model name; `cpu`: for an hour.
        currency: of all of them.
    """

    by_name: Mapping[str, tuple[float, float]]
    currency: str

    @classmethod
    def read(cls, written: Sequence[str], currency: str) -> Prices:
        """From `KB_PRICES` as the settings hold it: `name=in` or `name=in/out`."""
        found = {}
        for part in written:
            name, _, price = part.rpartition("=")
            into, _, out = price.partition("/")
            found[name] = (float(into), float(out or into))
        return cls(found, currency)

    def of_tokens(self, model: str, tokens: int, answer_tokens: int = 0) -> Money | None:
        """Money for tokens of a model, named with or without its fingerprint; None: no price."""
        price = self.by_name.get(model) or self.by_name.get(model.partition("@")[0])
        if price is None:
            return None
        return Money((tokens * price[0] + answer_tokens * price[1]) / 1e6, self.currency)

    def of_cpu(self, cpu_s: float) -> Money | None:
        """Money for computing time; None without a price."""
        price = self.by_name.get(CPU)
        return None if price is None else Money(cpu_s / 3600 * price[0], self.currency)


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a run took.

    Attributes:
        run_id: the run.
        cause: why it ran.
        stage: its name.
        documents: worked on, by scope.
        cpu_s: computing time, that of children included.
        tokens: by model.
    """

    run_id: str
    cause: str
    stage: str
    documents: Mapping[str, int]
    cpu_s: float
    tokens: Mapping[str, int]


def tokens_in(counters: Mapping[str, int]) -> dict[str, int]:
    """The token counts among a line's counters, by model."""
    return {
        name.removeprefix(TOKENS): count
        for name, count in counters.items()
        if name.startswith(TOKENS) and count
    }


def record(line: Line, step: Step, prices: Prices) -> dict[str, Any]:
    """Keep what a step took, shared out over its scopes by documents.

    Returns:
        The sums of the run so far: `documents`, `cpu_s`, `tokens`, `money`, `unpriced`.
    """
    with line.capabilities.database.transaction("pipeline") as conn:
        usage.record(conn, rows_of(step, prices))
        return usage.of_run(conn, step.run_id)


def rows_of(step: Step, prices: Prices) -> list[UsageRow]:
    """A step as rows of the ledger; the shares add up to the whole."""
    made = []
    left_documents = sum(step.documents.values())
    left_cpu_s, left = step.cpu_s, dict(step.tokens)
    for scope, documents in step.documents.items():
        share = documents / left_documents if left_documents else 0.0
        cpu_s = left_cpu_s * share
        row = UsageRow(scope, step.run_id, step.cause, step.stage)
        computing = replace(row, documents=documents, cpu_s=cpu_s)
        made.append(_with(computing, prices.of_cpu(cpu_s)))
        for model, tokens in left.items():
            here = round(tokens * share)
            asked = replace(row, model=model, tokens=here)
            made.append(_with(asked, prices.of_tokens(model, here)))
            left[model] = tokens - here
        left_documents -= documents
        left_cpu_s -= cpu_s
    return made


def _with(row: UsageRow, money: Money | None) -> UsageRow:
    return replace(row, money=money.amount, currency=money.currency) if money else row


def said(sums: Mapping[str, Any]) -> str:
    """The sums of a run as one line: `35 documents · 41.2 CPU s · 12,345 tokens · 0.0003 EUR`."""
    money = [f"{amount:.4f} {currency}" for currency, amount in sorted(sums["money"].items())]
    if not money or sums["unpriced"]:
        money.append("no price for its model" if sums["tokens"] else "no price set")
    return " · ".join(
        [
            f"{sums['documents']:,} documents",
            f"{sums['cpu_s']:.1f} CPU s",
            f"{sums['tokens']:,} tokens",
            *money,
        ]
    )


def since(line: Line, instant: datetime, prices: Prices) -> list[dict[str, Any]]:
    """What every scope took by day and model; tokens of answers at the price of now."""
    with line.capabilities.database.transaction("pipeline") as conn:
        found = usage.since(conn, instant)
    for row in found:
        if row["money"] is None and row["answer_tokens"]:
            money = prices.of_tokens(row["model"], row["tokens"], row["answer_tokens"])
            row |= {"money": money.amount, "currency": money.currency} if money else {}
    return found


def in_need(line: Line, limit: int) -> list[InNeed]:
    """Documents that wait for somebody, the most urgent first."""
    with line.capabilities.database.transaction("pipeline") as conn:
        return usage.in_need(conn, IN_NEED, limit)
