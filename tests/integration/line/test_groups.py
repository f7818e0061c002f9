"""Documents go through a stage in groups: cheaper together, and each its own all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from kb_resources.errors import ConflictError, NotFound, UnavailableError
from kb_resources.model import DocumentKey, Stage, StageReport
from kb_resources.stages import embed, group
from kb_resources.stages.line import Line
from kb_resources.store import passages, versions
from kb_resources.store.translate import reported

if TYPE_CHECKING:
    from tests.integration.line.conftest import Bench


def registered(bench: Bench, count: int, start: int = 0) -> list[DocumentKey]:
    keys = []
    for number in range(start, start + count):
        bench.write(
            f"{number}.md",
            f"# Room {number}\n\nThe key of room {number} is kept at desk {number}.\n",
        )
        keys.append(bench.line.register(bench.request(f"{number}.md")))
    return keys


def run_up_to(stage: Stage, bench: Bench, keys: list[DocumentKey]) -> None:
    for before in list(Stage)[: list(Stage).index(stage)]:
        list(bench.line.run_stage(before, keys))


def line_with(bench: Bench, **parts: Any) -> Line:
    return replace(bench.line, capabilities=replace(bench.line.capabilities, **parts))


class Counting:
    """A database whose statements are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements = 0
        for name in ("execute", "executemany"):
            monkeypatch.setattr(psycopg.Cursor, name, self._counted(getattr(psycopg.Cursor, name)))

    def _counted(self, own: Any) -> Any:
        def execute(cursor: Any, *given: Any, **named: Any) -> Any:
            self.statements += 1
            return own(cursor, *given, **named)

        return execute


def test_a_document_more_in_a_group_costs_few_statements(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.line.run_all(registered(bench, 1))
    counting = Counting(monkeypatch)
    costs = []
    for count, start in ((2, 1), (22, 3)):
        keys = registered(bench, count, start)
        before = counting.statements
        bench.line.run_all(keys)
        costs.append(counting.statements - before)
        assert {bench.state(key)[0] for key in keys} == {"indexed"}
    assert (costs[1] - costs[0]) / 20 <= 4, costs


@pytest.mark.requirement("P-13")
def test_what_the_gate_refuses_of_one_is_published_of_the_others(bench: Bench) -> None:
    keys = registered(bench, 3)
    run_up_to(Stage.INDEX, bench, keys)
    gone = bench.line.rows(keys)[1].version_key
    with bench.line.capabilities.database.transaction("owner") as conn:
        conn.execute("delete from kb.staged_vector where version_key = %s", [gone])
    outcomes = dict(bench.line.run_stage(Stage.INDEX, keys))
    assert isinstance(outcomes[keys[1]], ConflictError)
    assert [bench.line.rows([key])[0].current for key in keys] == [True, False, True]


@pytest.mark.requirement("P-13")
def test_what_cannot_be_stored_of_one_is_stored_of_the_others(bench: Bench) -> None:
    keys = registered(bench, 3)
    cut = bench.line.capabilities.chunk

    def far_out(parsed: Any, document_id: str, *given: Any) -> Any:
        chunks = cut(parsed, document_id, *given)
        if document_id != keys[1].document_id:
            return chunks
        return tuple(replace(chunk, byte_start=2**40) for chunk in chunks)

    last = line_with(bench, chunk=far_out).run_all(keys)
    assert [bench.state(key)[0] for key in keys] == ["indexed", "failed", "indexed"]
    assert bench.state(keys[1])[1].startswith("chunk: ")
    assert isinstance(last[keys[1]], Exception)
    bench.line.run_all([keys[1]])
    assert bench.state(keys[1]) == ("indexed", "")
    assert {hit.document_id for hit in bench.search("key of the room").hits} == {
        key.document_id for key in keys
    }


@pytest.mark.requirement("P-13")
def test_newer_bytes_of_one_leave_the_others_of_its_group_alone(bench: Bench) -> None:
    keys = registered(bench, 3)
    parse = bench.line.capabilities.parse
    renewed: list[str] = []

    def parsed(data: bytes, media_type: str, name: str, *, here: bool = False) -> Any:
        if name == "1.md" and not renewed:
            renewed.append(name)
            bench.write("1.md", "# Room 1\n\nIts key is lost.\n")
            list(bench.line.run_stage(Stage.ACQUIRE, [keys[1]]))
        return parse(data, media_type, name, here=here)

    last = line_with(bench, parse=parsed).run_all(keys)
    assert isinstance(last[keys[1]], ConflictError)
    assert [bench.state(key)[0] for key in keys] == ["indexed", "pending", "indexed"]
    bench.line.run_all([keys[1]])
    assert any("lost" in text for text in bench.texts("key of room 1"))


def test_what_was_made_before_a_service_went_away_is_kept_and_told(bench: Bench) -> None:
    keys = registered(bench, 3)
    list(bench.line.run_stage(Stage.ACQUIRE, keys))
    parse = bench.line.capabilities.parse

    def parsed(data: bytes, media_type: str, name: str, *, here: bool = False) -> Any:
        if name == "2.md":
            raise UnavailableError("The parser is away.")
        return parse(data, media_type, name, here=here)

    told: list[DocumentKey] = []
    with pytest.raises(UnavailableError):
        told.extend(key for key, _ in line_with(bench, parse=parsed).run_stage(Stage.PARSE, keys))
    assert told == keys[:2]
    again = dict(bench.line.run_stage(Stage.PARSE, keys))
    assert [_worked(again[key]) for key in keys] == [False, False, True]


def test_a_stage_that_is_to_stop_keeps_what_it_made_and_begins_no_more(bench: Bench) -> None:
    keys = registered(bench, 4)
    list(bench.line.run_stage(Stage.ACQUIRE, keys))
    parse = bench.line.capabilities.parse
    seen: list[str] = []

    def parsed(data: bytes, media_type: str, name: str, *, here: bool = False) -> Any:
        seen.append(name)
        return parse(data, media_type, name, here=here)

    line = line_with(bench, parse=parsed)
    stopped = dict(line.run_stage(Stage.PARSE, keys, should_stop=lambda: len(seen) >= 2))
    assert list(stopped) == keys[:2]
    assert seen == ["0.md", "1.md"]
    assert all(_worked(outcome) for outcome in stopped.values())


def test_equal_files_of_a_group_are_one_document_and_its_duplicates(bench: Bench) -> None:
    for name in ("a.md", "b.md", "c.md"):
        bench.write(name, "# Keys\n\nEvery key is kept at the desk.\n")
    keys = [bench.line.register(bench.request(name)) for name in ("a.md", "b.md", "c.md")]
    bench.line.run_all(keys)
    assert [bench.state(key)[0] for key in keys] == ["indexed", "duplicate", "duplicate"]
    assert keys[0].document_id in bench.state(keys[2])[1]


def test_groups_are_bounded_in_documents_and_bytes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = registered(bench, 5)
    list(bench.line.run_stage(Stage.ACQUIRE, keys))
    rows = bench.line.rows(keys)
    monkeypatch.setattr(group, "DOCUMENTS", 2)
    assert [len(each) for each in group.groups(rows)] == [2, 2, 1]
    monkeypatch.setattr(group, "BYTES", 1)
    assert [len(each) for each in group.groups(rows)] == [1] * 5


def test_long_bodies_of_short_files_are_not_held_together(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = registered(bench, 5)
    list(bench.line.run_stage(Stage.ACQUIRE, keys))
    monkeypatch.setattr(group, "groups", lambda rows: [list(rows)])  # as if the files were tiny
    loads: list[int] = []
    load = versions.load_all_parsed

    def loaded(conn: Any, version_keys: Any) -> Any:
        loads.append(len(version_keys))
        return load(conn, version_keys)

    monkeypatch.setattr(versions, "load_all_parsed", loaded)
    monkeypatch.setattr(group, "BYTES", 120)  # two bodies
    bench.line.run_all(keys)
    assert {bench.state(key)[0] for key in keys} == {"indexed"}
    assert set(loads) <= {1, 2}
    assert sum(loads) == 10, "by the scan and by the chunker"


@pytest.mark.requirement("P-13")
def test_newer_bytes_that_came_while_a_document_waited_for_its_group_stand(bench: Bench) -> None:
    keys = registered(bench, 2)
    read = bench.line.capabilities.read
    renewed: list[str] = []

    def reading(uri: str) -> Any:
        if uri.endswith("1.md") and not renewed:
            renewed.append(uri)
            bench.write("0.md", "# Room 0\n\nIts key is lost.\n")
            bench.line.run_all([keys[0]])
        return read(uri)

    outcomes = dict(line_with(bench, read=reading).run_stage(Stage.ACQUIRE, keys))
    assert [_worked(outcomes[key]) for key in keys] == [False, True]
    assert bench.line.rows([keys[0]])[0].latest_version == 1
    assert any("lost" in text for text in bench.texts("key of room 0"))


@pytest.mark.requirement("P-13")
def test_one_that_was_erased_and_registered_anew_is_not_written_under_its_old_key(
    bench: Bench,
) -> None:
    keys = registered(bench, 3)
    read = bench.line.capabilities.read
    erased: list[str] = []

    def reading(uri: str) -> Any:
        if uri.endswith("2.md") and not erased:
            erased.append(uri)
            with bench.line.capabilities.database.transaction("owner") as conn:
                conn.execute(
                    "update kb.document set document_id = 'erased' where document_id = %s",
                    [keys[1].document_id],
                )
            bench.line.register(bench.request("1.md"))
        return read(uri)

    outcomes = dict(line_with(bench, read=reading).run_stage(Stage.ACQUIRE, keys))
    assert isinstance(outcomes[keys[1]], NotFound)
    assert [row.latest_version for row in bench.line.rows(keys)] == [1, None, 1]
    bench.line.run_all([keys[1]])
    assert bench.state(keys[1])[0] == "indexed"


@pytest.mark.parametrize("stage", [Stage.CHUNK, Stage.EMBED, Stage.INDEX, Stage.SUPERSEDE])
def test_a_duplicate_is_refused_by_the_gate_and_stays_one(bench: Bench, stage: Stage) -> None:
    bench.ingest("a.md", "# Keys\n\nEvery key is kept at the desk.\n")
    key = bench.ingest("b.md", "# Keys\n\nEvery key is kept at the desk.\n")
    outcome = dict(bench.line.run_stage(stage, [key]))[key]
    assert isinstance(outcome, StageReport)
    assert outcome.refused
    assert bench.state(key)[0] == "duplicate"


def test_a_group_whose_writing_takes_longer_than_a_statement_may_is_written_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = registered(bench, 3)
    put = passages.put_versions

    def putting(conn: Any, puts: Any) -> Any:
        if len(puts) > 1:
            conn.execute("select set_config('statement_timeout', '1', true)")
            conn.execute("select pg_sleep(60)")
        return put(conn, puts)

    monkeypatch.setattr(passages, "put_versions", putting)
    bench.line.run_all(keys)
    assert {bench.state(key)[0] for key in keys} == {"indexed"}


def test_what_another_transaction_kept_from_one_of_a_group_is_tried_once_more_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = registered(bench, 3)
    put = passages.put_versions
    calls: list[int] = []

    def putting(conn: Any, puts: Any) -> Any:
        calls.append(len(puts))
        if len(puts) == 1:
            return put(conn, puts)
        return [*put(conn, puts[:-1]), reported("55P03", "lock not available", "")]

    monkeypatch.setattr(passages, "put_versions", putting)
    bench.line.run_all(keys)
    assert {bench.state(key)[0] for key in keys} == {"indexed"}
    assert calls == [3, 1]


def test_scopes_of_a_group_are_published_in_one_order(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("acme", "blue", "acme", "blue")
    keys = []
    for number, scope in enumerate(names):
        bench.write(f"{number}.md", f"# Room {number}\n\nThe key of room {number} is here.\n")
        keys.append(bench.line.register(bench.request(f"{number}.md", scope=scope)))
    put = passages.put_versions
    seen: list[int] = []

    def putting(conn: Any, puts: Any) -> Any:
        seen.extend(each.version_key for each in puts)
        return put(conn, puts)

    monkeypatch.setattr(passages, "put_versions", putting)
    bench.line.run_all(keys[::-1])
    rows = bench.line.rows(keys)
    scope_of = {row.version_key: row.scope for row in rows}
    assert [scope_of[key] for key in seen] == ["acme", "acme", "blue", "blue"]
    assert {row.state for row in rows} == {"indexed"}


def test_a_version_whose_text_is_gone_says_so_and_its_neighbour_is_embedded(bench: Bench) -> None:
    keys = registered(bench, 2)
    run_up_to(Stage.EMBED, bench, keys)
    gone = bench.line.rows(keys)[0].version_key
    with bench.line.capabilities.database.transaction("owner") as conn:
        conn.execute("delete from kb.parsed where version_key = %s", [gone])
    outcomes = dict(bench.line.run_stage(Stage.EMBED, keys))
    assert "no parsed text" in str(outcomes[keys[0]])
    assert _worked(outcomes[keys[1]])


def test_embedding_ends_after_the_chunks_that_are_with_the_model(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = registered(bench, 4)
    run_up_to(Stage.EMBED, bench, keys)
    monkeypatch.setattr(embed, "GROUP_CHUNKS", 1)
    told: list[DocumentKey] = []
    for key, _ in bench.line.run_stage(Stage.EMBED, keys, should_stop=lambda: bool(told)):
        told.append(key)
    assert told == keys[:1]


def _worked(outcome: object) -> bool:
    assert isinstance(outcome, StageReport)
    return outcome.worked
