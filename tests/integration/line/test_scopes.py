"""Scopes and events through the stages: retention, the log of a scope, consumers that crash."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.stages import events
from kb_resources.stages import scopes as stage
from kb_resources.store import jobs
from kb_resources.store.outbox import deliver
from kb_resources.store.records import Event

TEXT = "# Hall {n}\n\nThe keys of hall {n} hang beside the green door of the office."
CRASHING = """
import os, sys
from kb_resources.stages.events import consume
from kb_resources.store.pool import Database
dsn, log = sys.argv[1:]
def dies_after_the_second(event):
    with open(log, "a") as file:
        file.write(f"{event.event_id} {event.document_id}\\n")
    if sum(1 for _ in open(log)) == 2:
        os.kill(os.getpid(), 9)
with Database.external(dsn, pipeline_dsn=dsn, app_dsn=dsn) as database:
    consume(database, "mirror", dies_after_the_second)
"""


def database(bench: Any) -> Any:
    return bench.line.capabilities.database


@pytest.mark.requirement("W-15", "W-30")
def test_a_consumer_killed_between_callback_and_acknowledgement_gets_the_event_again(
    bench: Any, tmp_path: Any
) -> None:
    events.subscribe(database(bench), "mirror")
    for n in range(3):
        bench.ingest(f"hall{n}.md", TEXT.format(n=n))
    log = tmp_path / "told"
    command = [sys.executable, "-c", CRASHING, bench.settings.pipeline_database_url, str(log)]
    assert subprocess.run(command, check=False).returncode == -9
    assert len(log.read_text().splitlines()) == 2
    [waiting] = events.consumers(database(bench))
    assert (waiting["name"], waiting["scope"], waiting["waiting"]) == ("mirror", None, 2)
    assert subprocess.run(command, check=False).returncode == 0
    told = [line.split() for line in log.read_text().splitlines()]
    assert len(told) == 4
    assert told[1] == told[2]
    assert len({event_id for event_id, _ in told}) == 3
    assert events.waiting(database(bench), "mirror") == []


@pytest.mark.requirement("W-15", "W-30")
def test_a_callback_that_raises_reaches_the_caller_and_the_data_is_stored(bench: Any) -> None:
    """[62]"""
    events.subscribe(database(bench), "mirror", scope=None)
    key = bench.ingest("hall.md", TEXT.format(n=1))
    assert bench.state(key)[0] == "indexed"

    def refuses(event: Event) -> None:
        raise RuntimeError(f"cannot mirror {event.document_id}")

    with pytest.raises(RuntimeError, match="cannot mirror"):
        events.consume(database(bench), "mirror", refuses)
    [waiting] = events.consumers(database(bench))
    assert (waiting["waiting"], waiting["attempts"]) == (1, 1)
    seen: list[str] = []
    assert deliver(database(bench), "mirror", lambda event: seen.append(event.document_id)) == 1
    assert seen == [key.document_id]
    events.unsubscribe(database(bench), "mirror")
    with database(bench).transaction("pipeline") as conn:
        assert conn.execute("select count(*) from kb.event").fetchone() == (0,)


def test_nobody_who_listens_costs_no_event(bench: Any) -> None:
    bench.ingest("hall.md", TEXT.format(n=1))
    with database(bench).transaction("pipeline") as conn:
        assert conn.execute("select count(*) from kb.event").fetchone() == (0,)


def test_retention_removes_what_outlived_it_and_nothing_else(bench: Any) -> None:
    old, new = (bench.ingest(f"hall{n}.md", TEXT.format(n=n)) for n in (1, 2))
    caps = bench.line.capabilities
    assert stage.expire(caps, "acme", actor="test") == stage.Expired()
    stage.configure(caps.database, "acme", {"retention_days": 30}, actor="test")
    with caps.database.transaction("pipeline") as conn:
        conn.execute(
            "update kb.document set updated_at = updated_at - interval '40 days'"
            " where document_id = %s", [old.document_id],
        )  # fmt: skip
    with caps.database.transaction("owner") as conn:
        conn.execute(
            "update kb.validity x set valid = tstzrange(lower(valid) - interval '40 days', null)"
            " from kb.document d where d.document_key = x.document_key and d.document_id = %s",
            [old.document_id],
        )
    with caps.database.transaction("pipeline") as conn:
        now = conn.execute("select now()").fetchone()[0]
    found = stage.outlived(caps.database, "acme", now)
    assert old.document_id in found
    expired = stage.expire(_at(caps, now), "acme", actor="test")
    assert expired == stage.Expired(tuple(found))
    assert bench.state(old)[0] == "removed"
    assert "30 days" in bench.state(old)[1]
    assert bench.state(new)[0] == ("removed" if new.document_id in found else "indexed")
    entries = stage.overview(caps.database, "acme", now).history
    assert entries[-1]["event"] == "expired"


def _at(caps: Any, now: Any) -> Any:
    from dataclasses import replace

    return replace(caps, clock=lambda: now)


def test_a_document_with_the_bytes_of_an_expired_one_is_named_to_be_read(bench: Any) -> None:
    first = bench.ingest("hall1.md", TEXT.format(n=1))
    copy = bench.ingest("copy.md", TEXT.format(n=1))
    assert bench.state(copy)[0] == "duplicate"
    caps = bench.line.capabilities
    stage.configure(caps.database, "acme", {"retention_days": 1}, actor="test")
    with caps.database.transaction("pipeline") as conn:
        later = conn.execute("select clock_timestamp() + interval '40 days'").fetchone()[0]
    expired = stage.expire(_at(caps, later), "acme", actor="test")
    assert expired == stage.Expired((first.document_id,), (copy,))
    bench.line.run_all(expired.woken)
    assert bench.state(copy)[0] == "indexed"


def test_passages_are_no_longer_than_the_scopes_model_reads(bench: Any) -> None:
    stage.create(database(bench), "acme", languages=["en"], actor="test")
    small, large = "multilingual-e5-small", "bge-m3"

    def tokens(number: int, **given: str) -> int:
        model = given.pop("model", "")
        made = stage.configure(
            database(bench), "acme", {"chunk_tokens": number, **given}, model=model, actor="test"
        )
        return made.scope.settings.chunk_tokens

    assert tokens(512, model=small) == 512
    assert tokens(600, model=large) == 600
    for refused in ({"model": small}, {"model": ""}):
        with pytest.raises(InputError) as caught:
            tokens(513 if refused["model"] else 10_000, **refused)
        assert caught.value.code == "too_many_tokens"
    with pytest.raises(InputError):  # the scope's own model counts before the installation's
        stage.configure(
            database(bench), "acme", {"model": small, "chunk_tokens": 513}, model=large,
            actor="test",
        )  # fmt: skip


@pytest.mark.requirement("P-84", "P-37")
@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_scope_is_not_closed_under_an_upload_that_waits_or_is_at_work(
    bench: Any, state: str
) -> None:
    stage.create(database(bench), "acme", languages=["en"], actor="test")
    stage.create(database(bench), "other", languages=["en"], actor="test")
    now = bench.line.capabilities.clock()
    with database(bench).transaction("pipeline") as conn:
        jobs.add(
            conn, "a" * 16, scope="acme", document_id="hall", kind="ingest", actor="ana",
            request={},
        )  # fmt: skip
        job = jobs.claim(conn) if state == "running" else None
    with pytest.raises(ConflictError) as caught:
        stage.close(database(bench), "acme", now, actor="test")
    assert caught.value.code == "scope_busy"
    assert stage.overview(database(bench), "acme", now).scope.closed_at is None
    assert stage.close(database(bench), "other", now, actor="test").closed_at == now
    if job is None:
        assert stage.close(database(bench), "acme", now, actor="test", anyway=True).closed_at
        return
    with database(bench).transaction("pipeline") as conn:
        jobs.finish(conn, job)
    assert stage.close(database(bench), "acme", now, actor="test").closed_at == now


def test_unknown_and_malformed_settings_are_refused(bench: Any) -> None:
    stage.create(database(bench), "acme", languages=["en"], actor="test")
    for changes in (
        {"colour": "red"},
        {"languages": ("english",)},
        {"languages": ("en", "all")},
        {"languages": ("bs",)},
        {"chunk_preset": "odd"},
        {"chunk_tokens": 7},
        {"chunk_tokens": 10**9},
        {"retention_days": -1},
        {"audiences": ("two words",)},
    ):
        with pytest.raises(InputError):
            stage.configure(database(bench), "acme", changes, actor="test")
    with pytest.raises(NotFound):
        stage.configure(database(bench), "other", {}, actor="test")
    with pytest.raises(InputError):
        stage.rename(database(bench), "acme", " ", actor="test")


def test_the_log_of_a_scope_cannot_be_changed(bench: Any) -> None:
    stage.create(database(bench), "acme", languages=["en"], actor="test")
    with pytest.raises(PolicyError), database(bench).transaction("owner") as conn:
        conn.execute("update kb.scope_log set actor = 'nobody'")
