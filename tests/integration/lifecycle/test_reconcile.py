"""Reconciliation: each difference is made on purpose, found, and mended or told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_resources.stages import removal
from kb_resources.stages.reconcile import Difference, reconcile_stores
from kb_resources.store import erasure, locks, reconcile

if TYPE_CHECKING:
    from kb_resources.store.documents import Conn
    from tests.integration.line.conftest import Bench

LEAVE = "# Leave\n\nEvery employee has thirty days of paid annual leave in a calendar year.\n"


def _found(bench: Bench) -> list[tuple[str, bool]]:
    return [(item.kind, item.repaired) for item in reconcile_stores(bench.line.capabilities)]


def _break(bench: Bench, statement: str) -> None:
    with bench.line.capabilities.database.transaction("owner") as conn:
        conn.execute("set local session_replication_role = replica")
        assert conn.execute(statement.encode()).rowcount > 0


def _blob_files(bench: Bench) -> list[Path]:
    return [path for path in Path(bench.settings.blob_url).rglob("*") if path.is_file()]


@pytest.mark.requirement("O-29", "O-20")
def test_stores_that_agree_give_nothing(bench: Bench) -> None:
    bench.ingest("leave.md", LEAVE)
    bench.ingest("leave.md", LEAVE + "\nUnused days lapse.\n")
    bench.ingest("hr.md", LEAVE.replace("thirty", "forty"), audiences=("hr",))
    assert _found(bench) == []


def test_bytes_that_nobody_needs_are_deleted(bench: Bench) -> None:
    bench.ingest("leave.md", LEAVE)
    half = _blob_files(bench)[0].with_name(".incoming-killed")
    half.write_bytes(b"half of some")
    os.utime(half, (0, 0))
    assert _found(bench) == [("half_written_blob", True)]
    bench.line.capabilities.blobs("acme").put(b"left by a crash")
    assert _found(bench) == [("orphan_blob", True)]
    assert len(_blob_files(bench)) == 1
    assert _found(bench) == []


def test_missing_bytes_are_fetched_from_their_source_or_told(bench: Bench) -> None:
    bench.ingest("leave.md", LEAVE)
    _blob_files(bench)[0].unlink()
    assert _found(bench) == [("missing_blob", True)]
    _blob_files(bench)[0].unlink()
    (bench.folder / "leave.md").write_text("something else")
    [left] = reconcile_stores(bench.line.capabilities)
    assert isinstance(left, Difference)
    assert not left.repaired
    assert "backup" in left.next_step


@pytest.mark.requirement("O-29")
@pytest.mark.parametrize("table", ["lex", "embedding"])
def test_rows_with_other_readers_than_their_document_are_mended(bench: Bench, table: str) -> None:
    bench.ingest("hr.md", LEAVE, audiences=("hr",))
    _break(bench, f"update kb.{table} set audiences = '{{}}'")
    assert _found(bench) == [("readers", True)]
    assert not bench.search("annual leave").hits
    assert _found(bench) == []


def test_rows_that_hold_at_other_times_than_the_ledger_says_are_mended(bench: Bench) -> None:
    bench.ingest("leave.md", LEAVE)
    _break(bench, "update kb.lex set valid_until = valid_from + interval '1 second'")
    assert _found(bench) == [("validity", True)]
    assert bench.search("annual leave").hits


def test_a_document_of_which_nothing_is_found_is_taken_up_again(bench: Bench) -> None:
    key = bench.ingest("leave.md", LEAVE)
    _break(bench, "delete from kb.lex")
    assert ("indexed_but_not_published", True) in _found(bench)
    assert bench.state(key)[0] == "pending"


def test_what_is_decided_while_stores_are_compared_is_left_as_it_is(bench: Bench) -> None:
    """A removal and an erasure between finding a document and mending it."""
    keys = [bench.ingest(f"{n}.md", LEAVE.replace("thirty", n)) for n in ("one", "two", "three")]
    _break(bench, "delete from kb.lex")
    caps = bench.line.capabilities

    def decide(conn: Conn) -> int:
        removal.remove(caps, keys[0], actor="test", reason="gone")
        with caps.database.transaction("pipeline") as other:
            row = locks.load_locked(other, keys[1])
            erasure.erase_rows(other, row.document_key, alias="erased-1", reason="asked")
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconcile, "drop_stale_staging", decide)
        found = reconcile_stores(caps)
    unpublished = [item.subject for item in found if item.kind == "indexed_but_not_published"]
    assert unpublished == [str(keys[2])]
    assert [bench.state(key)[0] for key in (keys[0], keys[2])] == ["removed", "pending"]


def test_a_removed_document_that_is_still_found_leaves_search(bench: Bench) -> None:
    bench.ingest("leave.md", LEAVE)
    _break(bench, "update kb.document set state = 'removed', reason = 'x'")
    assert _found(bench) == [("removed_but_published", True)]
    assert not bench.search("annual leave").hits
