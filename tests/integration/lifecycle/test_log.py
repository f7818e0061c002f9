"""The lifecycle log: append-only, and any change that gets past that is found."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from kb_resources.store import documents, lifecycle

if TYPE_CHECKING:
    from tests.integration.line.conftest import Bench

LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave in a calendar year.\n"


def _verify(bench: Bench) -> list[str]:
    with bench.line.capabilities.database.transaction("pipeline") as conn:
        found = lifecycle.verify(conn)
    assert found.entries or found.broken
    return [broken.problem for broken in found.broken]


def _tamper(bench: Bench, statement: str) -> None:
    """As the owner who switches the triggers off."""
    with bench.line.capabilities.database.transaction("owner") as conn:
        conn.execute("set local session_replication_role = replica")
        assert conn.execute(statement.encode()).rowcount > 0


@pytest.fixture
def logged(bench: Bench) -> Bench:
    for number in range(3):
        bench.ingest("leave.md", LEAVE + "Again.\n" * number)
    bench.ingest("other.md", LEAVE.replace("thirty", "forty"))
    return bench


@pytest.mark.requirement("P-32")
@pytest.mark.parametrize(
    "statement",
    ["update kb.lifecycle set actor = 'x'", "delete from kb.lifecycle", "truncate kb.lifecycle"],
)
def test_entries_cannot_be_changed(logged: Bench, statement: str) -> None:
    for role in ("owner", "pipeline", "app"):
        if role == "owner" and statement.startswith("truncate"):
            continue
        caps = logged.line.capabilities
        with (
            pytest.raises(Exception, match=r"append-only|denied"),
            caps.database.transaction(role) as conn,
        ):  # type: ignore[arg-type]
            conn.execute(statement.encode())
    assert _verify(logged) == []


@pytest.mark.requirement("P-32")
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("update kb.lifecycle set actor = 'x' where lifecycle_id in "
         "(select min(lifecycle_id) from kb.lifecycle)", ["changed"]),
        ("update kb.lifecycle set details = details || '{\"a\": 1}' where lifecycle_id in "
         "(select max(lifecycle_id) from kb.lifecycle)", ["changed"]),
        ("update kb.lifecycle set at = at + interval '1 second' where lifecycle_id in "
         "(select max(lifecycle_id) from kb.lifecycle)", ["changed"]),
        ("delete from kb.lifecycle where lifecycle_id in (select lifecycle_id from kb.lifecycle "
         "order by lifecycle_id offset 1 limit 1)", ["gap before", "cut off after"]),
        ("delete from kb.lifecycle where lifecycle_id in "
         "(select max(lifecycle_id) from kb.lifecycle)", ["cut off after"]),
        ("delete from kb.lifecycle where document_key in "
         "(select max(document_key) from kb.lifecycle)", ["cut off after"]),
        ("delete from kb.lifecycle_head where document_key in "
         "(select max(document_key) from kb.lifecycle)", ["cut off after"]),
    ],
)  # fmt: skip
def test_a_change_behind_the_trigger_is_found(
    logged: Bench, statement: str, problem: list[str]
) -> None:
    assert _verify(logged) == []
    _tamper(logged, statement)
    assert sorted(_verify(logged)) == sorted(problem)


def test_entries_written_at_once_still_form_one_chain(bench: Bench) -> None:
    key = bench.ingest("leave.md", LEAVE)
    [row] = bench.line.rows([key])
    caps = bench.line.capabilities

    def write(number: int) -> None:
        for step in range(5):
            with caps.database.transaction("pipeline") as conn:
                documents.append_lifecycle(
                    conn, row, "note", actor=f"w{number}", version=None, step=step
                )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _verify(bench) == []
    with psycopg.connect(bench.settings.database_url) as conn:
        found = conn.execute("select count(*) from kb.lifecycle where event = 'note'").fetchone()
    assert found == (30,)
