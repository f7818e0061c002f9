"""Dagster's storage forgets one document of a batch, and nothing of the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from kb_assets.forget import NOT_LOOKED_AT, forget
from kb_resources.bindings.partitions import add_documents
from kb_resources.model import Stage

if TYPE_CHECKING:
    from kb_resources.model import DocumentKey
    from tests.dagster.conftest import Plant

CANARY = "quibblewarbler"
TEXT = "# {0}\n\nThe {0} was seen near the harbour on the second of May 2024.\n"


def _dsn(plant: Plant) -> str:
    import os

    assert plant.instance is not None
    return os.environ["KB_DAGSTER_URL"].replace("+psycopg2", "", 1)


def _everything(dsn: str) -> str:
    """Every row of every table as text."""
    with psycopg.connect(dsn) as conn:
        tables = conn.execute(
            "select quote_ident(table_name) from information_schema.tables "
            "where table_schema = 'public' and table_type = 'BASE TABLE'"
        ).fetchall()
        return "\n".join(
            str(row[0])
            for (table,) in tables
            for row in conn.execute(f"select t::text from {table} t".encode()).fetchall()
        )


def _forget(plant: Plant, key: DocumentKey, folder: Path) -> dict[str, int]:
    source = str(plant.folder / "acme" / f"{CANARY}.md")
    return forget(
        _dsn(plant),
        [folder],
        partition=str(key),
        alias="erased-0123456789abcdef",
        names=[key.document_id, source, f"{CANARY}.md"],
    )


@pytest.mark.requirement("O-12")
def test_one_document_of_a_batch_is_forgotten_and_the_others_stay_green(
    plant: Plant, tmp_path: Path
) -> None:
    gone, kept = plant.register(
        {f"{CANARY}.md": TEXT.format(CANARY), "leave.md": TEXT.format("gull")}
    )
    add_documents(plant.instance, [gone, kept])
    plant.batch([gone, kept])
    assert plant.materialize(gone, Stage.INDEX, Stage.SUPERSEDE) is not None
    assert CANARY in _everything(_dsn(plant))
    log = tmp_path / "logs" / "run" / "step.err"
    log.parent.mkdir(parents=True)
    log.write_text(f"read {CANARY}.md\nread leave.md\n")
    counts = _forget(plant, gone, tmp_path / "logs")
    assert CANARY not in _everything(_dsn(plant))
    assert log.read_text() == "read erased-0123456789abcdef\nread leave.md\n"
    assert counts["event_logs"] >= 8
    assert counts["dynamic_partitions"] == 1
    assert counts["log files"] == 1
    assert str(kept) in plant.green(Stage.INDEX)
    assert str(gone) not in plant.green(Stage.INDEX)
    add_documents(plant.instance, [gone])
    assert str(gone) not in plant.green(Stage.INDEX), "a key added again must not be green"
    assert str(gone) not in plant.checks(Stage.SCAN, "no_injection")


def test_a_document_that_begins_alike_is_left_alone(plant: Plant, tmp_path: Path) -> None:
    short, longer = plant.register({"a.md": TEXT.format("gull"), "b.md": TEXT.format("tern")})
    plant.batch([short, longer])
    counts = forget(
        _dsn(plant), [tmp_path / "none"], partition="acme:a", alias="erased-1", names=["a"]
    )
    assert "event_logs" not in counts
    assert {str(short), str(longer)} <= plant.green(Stage.INDEX)


def test_every_table_of_dagster_is_looked_at(plant: Plant) -> None:
    with psycopg.connect(_dsn(plant)) as conn:
        found = conn.execute(
            "select table_name, string_agg(data_type, ',') from information_schema.columns "
            "where table_schema = 'public' and data_type not in ('text', 'character varying', "
            "'bigint', 'integer', 'double precision', 'boolean', 'timestamp without time zone') "
            "group by 1"
        ).fetchall()
    left_out = {table for table, _ in found} - NOT_LOOKED_AT
    assert left_out == set(), "a release of Dagster keeps names in columns of another type"


@pytest.mark.requirement("P-20")
def test_an_actor_is_replaced_in_tags_of_runs(plant: Plant, tmp_path: Path) -> None:
    [key] = plant.register({"leave.md": TEXT.format("gull")})
    batch_id = plant.line.new_batch([key], actor="test", cause="test")
    plant.run_batch({"batch_id": batch_id}, {"kb/actor": "user:zora9"})
    assert "user:zora9" in _everything(_dsn(plant))
    forget(
        _dsn(plant), [tmp_path / "none"], partition="", alias="deleted-user", names=["user:zora9"]
    )
    stored = _everything(_dsn(plant))
    assert "user:zora9" not in stored
    assert "deleted-user" in stored
