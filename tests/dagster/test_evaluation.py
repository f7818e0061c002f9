"""The asset that asks labelled questions, and the check that blocks a loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from kb_resources.store import evaluations
from tests.dagster.conftest import Plant

TEXTS = {
    "leave.md": "# Leave\n\nEmployees take thirty days of annual leave.\n",
    "sick.md": "# Illness\n\nWhoever falls ill reports it before nine.\n",
    "travel.md": "# Travel\n\nJourneys by train are booked in second class.\n",
}
ASKED = {
    "leave.md": "How many days of annual leave do employees take?",
    "sick.md": "By when does somebody who falls ill report it?",
    "travel.md": "In which class are journeys by train booked?",
}


def write(folder: Path, *more: dict[str, Any]) -> Path:
    asked = [
        {"id": name, "text": text, "language": "en", "relevant": [{"document": name}]}
        for name, text in ASKED.items()
    ]
    asked += [{"id": "mars", "text": "What is the capital of Mars?", "relevant": []}, *more]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "acme.jsonl"
    file.write_text("\n".join(map(json.dumps, asked)))
    return file


def run(plant: Plant) -> tuple[dict[str, Any], Any]:
    from kb_assets.evaluation import evaluation

    done = dg.materialize(
        [evaluation],
        instance=plant.instance,
        resources={"line": plant.line},
        raise_on_error=False,
    )
    (made,) = done.asset_materializations_for_node("kb_scopes__evaluation")
    (checked,) = done.get_asset_check_evaluations()
    return {
        name: rows(value) if isinstance(value, dg.TableMetadataValue) else value.value
        for name, value in made.metadata.items()
    }, checked


def rows(table: Any) -> list[Any]:
    return [record.data for record in table.records]


def runs(plant: Plant) -> list[dict[str, Any]]:
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        return evaluations.recent(conn, "acme")


@pytest.mark.requirement("P-38", "P-40")
def test_figures_are_plotted_and_a_loss_blocks(plant: Plant) -> None:
    from kb_assets.evaluation import question_folder

    plant.batch(plant.register(TEXTS))
    file = write(question_folder())
    shown, checked = run(plant)
    assert (shown["files"], shown["questions"]) == (1, 4)
    assert (shown["acme_ndcg_10"], shown["acme_r_1"]) == (1.0, 1.0)
    assert shown["acme_nothing"] in (0.0, 1.0)
    assert {row["question"] for row in shown["by_question"]} == {*ASKED, "mars"}
    assert checked.passed
    assert checked.severity is dg.AssetCheckSeverity.ERROR
    assert checked.blocking

    (first,) = runs(plant)
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        evaluations.accept(conn, first["run_id"], "test")
    assert run(plant)[1].passed
    plant.batch(
        plant.register({f"better-{name}": f"# {text}\n\n{text}\n" for name, text in ASKED.items()})
    )
    _, checked = run(plant)
    assert not checked.passed
    (row,) = rows(checked.metadata["by_file"])
    assert row["accepted"] == first["run_id"]
    assert "Worse than the accepted run" in row["why"]

    worse = runs(plant)[0]
    with plant.line.capabilities.database.transaction("pipeline") as conn:
        evaluations.accept(conn, worse["run_id"], "test")
    assert run(plant)[1].passed  # somebody wanted it so
    write(question_folder(), {"id": "gone", "text": "?", "relevant": [{"document": "gone.md"}]})
    _, checked = run(plant)
    assert not checked.passed
    (row,) = rows(checked.metadata["by_file"])
    assert "Line 5, question 'gone'" in row["why"]
    file.unlink()


def test_without_question_files_there_is_nothing_to_fail(plant: Plant) -> None:
    shown, checked = run(plant)
    assert shown == {"files": 0, "questions": 0}
    assert checked.passed
