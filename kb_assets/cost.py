"""The asset `kb_scopes/cost`: what runs and answers took, by day, scope and model.

Belongs here: the rhythm and what operators see. What does not: measuring (`metering`), prices and
sums (`stages.usage`). One run's share stands on the run itself, as its tag `kb/cost`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from kb_assets.scopes import GROUP_NAME, OWNERS
from kb_resources.bindings.metadata import table
from kb_resources.settings import load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.usage import Prices, since

COST = dg.AssetKey(["kb_scopes", "cost"])
DAYS = 30


@dg.asset(
    key=COST,
    group_name=GROUP_NAME,
    owners=OWNERS,
    kinds={"postgres"},
    code_version="1",
    description=(
        f"What ingestion and answers took in {DAYS} days: computing time, tokens by model, and "
        "money where `KB_PRICES` names a price. What a single run took stands on the run: its tag "
        "`kb/cost`, and the output of each step."
    ),
    automation_condition=dg.AutomationCondition.on_cron("5 * * * *"),
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=6), warn_window=timedelta(hours=3)
    ),
)
def cost(line: dg.ResourceParam[Line]) -> dg.MaterializeResult[None]:
    """Add up."""
    settings = load_settings()
    now = datetime.now(UTC)
    prices = Prices.read(settings.prices, settings.currency)
    rows = since(line, now - timedelta(days=DAYS), prices)
    today = [row for row in rows if row["day"] == now.date()]
    return dg.MaterializeResult(
        metadata={
            **{f"today_{name}": value for name, value in _sums(today).items()},
            **{f"month_{name}": value for name, value in _sums(rows).items()},
            "unpriced_models": ", ".join(_unpriced(rows)) or "none",
            "by_scope": _table(rows, "scope"),
            "by_model": _table([row for row in rows if row["model"]], "model"),
            "by_day": _table(rows, "day"),
        }
    )


def _sums(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Computing time in seconds, tokens in and out, money by currency."""
    money: dict[str, float] = {}
    for row in rows:
        if row["money"] is not None:
            name = f"money_{row['currency']}"
            money[name] = money.get(name, 0.0) + row["money"]
    return {
        "cpu_s": round(sum(row["cpu_s"] for row in rows), 1),
        "tokens": float(sum(row["tokens"] + row["answer_tokens"] for row in rows)),
        **{name: round(amount, 6) for name, amount in sorted(money.items())},
    }


def _unpriced(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Models that took tokens of which nobody said a price."""
    return sorted(
        {
            str(row["model"])
            for row in rows
            if row["model"] and row["money"] is None and row["tokens"] + row["answer_tokens"]
        }
    )


def _table(rows: Sequence[Mapping[str, Any]], by: str) -> dg.TableMetadataValue:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[by]), []).append(row)
    kinds = {by: "string", "cpu_s": "float", "tokens": "int", "money": "string"}
    return table(
        kinds,
        (
            {
                by: name,
                "cpu_s": sums.pop("cpu_s"),
                "tokens": int(sums.pop("tokens")),
                "money": ", ".join(
                    f"{amount:.4f} {currency.removeprefix('money_')}"
                    for currency, amount in sums.items()
                )
                or "no price",
            }
            for name, sums in ((name, _sums(group)) for name, group in groups.items())
        ),
    )
