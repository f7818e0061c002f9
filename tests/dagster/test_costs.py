"""What a run took stands on the run and in the ledger: documents, computing time, tokens, money."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kb_resources.settings import load_settings
from kb_resources.stages import usage

if TYPE_CHECKING:
    from tests.dagster.conftest import Plant

TEXT = "# House {n}\n\nThe office in house {n} opens at eight and closes at five on working days.\n"


@pytest.mark.requirement("P-64", "P-79")
def test_a_run_says_what_it_took_and_the_ledger_keeps_it_by_scope(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_PRICES", "multilingual-e5-small=0.5,cpu=0.04")
    keys = [
        *plant.register({"one.md": TEXT.format(n=1), "two.md": TEXT.format(n=2)}, "acme"),
        *plant.register({"three.md": TEXT.format(n=3)}, "other"),
    ]
    result = plant.batch(keys)
    assert result.success
    run = plant.instance.get_run_by_id(result.run_id)
    assert run is not None
    said = run.tags["kb/cost"]
    assert said.startswith("3 documents · ")
    assert said.endswith(" EUR")

    prices = usage.Prices.read(load_settings().prices, "EUR")
    rows = usage.since(plant.line, datetime.now(UTC) - timedelta(hours=1), prices)
    tokens = {row["scope"]: row["tokens"] for row in rows if row["model"]}
    assert tokens.keys() == {"acme", "other"}
    assert sum(tokens.values()) == sum(
        count for (count,) in _token_counts(plant)
    )  # each passage went to the model once
    computing = {row["scope"]: row["cpu_s"] for row in rows if row["model"] is None}
    assert all(spent > 0 for spent in computing.values())
    assert all(row["money"] >= 0 and row["currency"] == "EUR" for row in rows)

    outputs = {
        event.step_output_data.output_name: event
        for event in result.all_events
        if event.is_successful_output and event.step_key == "embed"
    }
    taken = outputs["done"].step_output_data.metadata
    assert taken["tokens"].value == sum(tokens.values())
    assert taken["documents"].value == 3


def _token_counts(plant: Plant) -> list[tuple[int]]:
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        return conn.execute("select token_count from kb.passage").fetchall()


@pytest.mark.requirement("P-79")
def test_a_run_without_work_costs_no_tokens(plant: Plant) -> None:
    keys = plant.register({"one.md": TEXT.format(n=1)})
    assert plant.batch(keys).success
    again = plant.batch(keys)
    run = plant.instance.get_run_by_id(again.run_id)
    assert run is not None
    assert " 0 tokens" in run.tags["kb/cost"]


def test_no_name_of_a_document_stands_in_the_usage(plant: Plant) -> None:
    keys = plant.register({"secret-name.md": TEXT.format(n=1)})
    assert plant.batch(keys).success
    with plant.line.capabilities.database.transaction("owner") as conn:
        rows = conn.execute("select u::text from kb.usage u").fetchall()
    assert rows
    assert not [row for (row,) in rows if "secret" in row]
