"""Uploads: the limit while reading, jobs in a process of their own, restarts, who may read."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from kb.http import worker
from kb.http.logs import access_log
from kb.http.multipart import UploadReader, boundary_of, safe_name
from kb.http.supervisor import IDENTITY_VARIABLES, Supervisor, worker_environment
from kb.http.uploads import spool_folder
from kb_resources.errors import InputError, PolicyError
from kb_resources.settings import Settings, as_environment, load_settings
from kb_resources.store import jobs
from kb_resources.store.pool import Database
from tests.read.http.conftest import Client, Served, make_key, serving

NOTE = "# Parking\n\nVisitors park in zone seven; a permit costs twelve euros a month.\n"


@pytest.fixture
def working(settings: Settings) -> Iterator[Served]:
    """A server over an empty installation, with its ingest process."""
    with serving(settings) as running:
        yield running


@pytest.fixture
def idle(settings: Settings) -> Iterator[Served]:
    """A server whose jobs nobody takes."""
    with serving(settings, run_worker=False) as running:
        yield running


def waiting_jobs(settings: Settings) -> list[tuple[str, str, int]]:
    with psycopg.connect(settings.database_url) as conn:
        rows = conn.execute("select job_id, state, attempts from kb.job order by job_no").fetchall()
    return [(str(a), str(b), int(c)) for a, b, c in rows]


def take_jobs(settings: Settings) -> bool:
    """What the worker does, here and to the end of the queue; False where another one runs."""
    return worker.work(settings, linger_s=0.3, should_stop=lambda: False)


@pytest.mark.requirement("P-69", "P-16", "B-04")
def test_an_upload_is_found_by_its_uploader_and_nobody_else(working: Served) -> None:
    editor = working.client.with_key(make_key(working.settings, "editor"))
    answer = editor.upload("parking.md", NOTE)
    assert answer.status == 202, answer.text
    job = editor.done(answer.json["job_id"])
    assert (job["state"], [d["state"] for d in job["documents"]]) == ("done", ["indexed"]), job
    query = {"query": "parking permit", "scope": "acme"}
    [hit] = editor("POST", "/api/v1/search", json=query).json["hits"]
    assert hit["source"] == "parking.md"
    other = working.client.with_key(make_key(working.settings, "viewer"))
    assert other("POST", "/api/v1/search", json=query).json["hits"] == []
    shown = editor("GET", f"/api/v1/documents/acme/{hit['document_id']}").json
    assert {event["actor"] for event in shown["lifecycle"]} == {job["actor"]}
    assert shown["audiences"] == [f"user:{job['actor']}"]
    assert list(spool_folder(working.settings).iterdir()) == []


def test_an_upload_for_everyone_says_so(idle: Served) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    assert editor.upload("a.md", NOTE, audiences="").status == 202
    take_jobs(idle.settings)
    other = idle.client.with_key(make_key(idle.settings, "viewer"))
    query = {"query": "parking permit", "scope": "acme"}
    assert len(other("POST", "/api/v1/search", json=query).json["hits"]) == 1


def test_two_peoples_files_of_one_name_are_two_documents(idle: Served) -> None:
    people = [idle.client.with_key(make_key(idle.settings, "editor")) for _ in range(2)]
    for number, person in enumerate(people):
        assert person.upload("report.md", f"# Report {number}\n\nNumber {number}.").status == 202
    with psycopg.connect(idle.settings.database_url) as conn:
        [row] = conn.execute("select count(distinct document_id) from kb.job").fetchall()
    assert row == (2,)


def test_nobody_takes_over_a_document_they_may_not_read(idle: Served) -> None:
    one, other = (idle.client.with_key(make_key(idle.settings, "editor")) for _ in range(2))
    assert one.upload("mine.md", NOTE, document_id="mine").status == 202
    take_jobs(idle.settings)
    answer = other.upload("theirs.md", "# Other\n\nText.", document_id="mine")
    assert (answer.status, answer.json["code"]) == (403, "document_id_refused")
    assert one.upload("mine.md", NOTE + "\nMore.\n", document_id="mine").status == 202


@pytest.mark.parametrize("audience", ["user:somebody", "agent:planner", "project:x", "chat:7"])
def test_a_reserved_audience_belongs_to_those_who_hold_it(idle: Served, audience: str) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    answer = editor.upload("a.md", NOTE, audiences=audience)
    assert (answer.status, answer.json["code"]) == (403, "audience_reserved")
    holder = idle.client.with_key(make_key(idle.settings, "editor", audiences=[audience]))
    assert holder.upload("a.md", NOTE, audiences=audience).status == 202


def test_an_upload_past_the_limit_is_refused_while_it_comes(settings: Settings) -> None:
    from dataclasses import replace

    small = replace(settings, max_bytes=100_000)
    with serving(small, run_worker=False) as running:
        editor = running.client.with_key(make_key(small, "editor"))
        answer = editor.upload("a.txt", b"x" * 100_001)
        assert (answer.status, answer.json["code"]) == (413, "request_too_large")
        assert editor.upload("a.txt", b"x" * 100_000).status == 202
        sent = _sent_before_refusal(running.client.base, str(editor.key), announced=None)
        assert sent < 20_000_000, "it went on reading"
        assert _sent_before_refusal(running.client.base, str(editor.key), announced=10**10) < 10**6
        assert len(list(spool_folder(small).iterdir())) == 1


def _sent_before_refusal(base: str, key: str, announced: int | None) -> int:
    """How many bytes of an endless file were taken before the server answered 413."""
    parts = urlsplit(base)
    length = f"Content-Length: {announced}" if announced else "Transfer-Encoding: chunked"
    head = (
        f"POST /api/v1/documents HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Authorization: Bearer {key}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\n{length}\r\n\r\n"
    )
    begin = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    sent = 0
    with socket.create_connection((str(parts.hostname), int(parts.port or 0)), 10) as connection:
        connection.sendall(head.encode())
        connection.settimeout(0.05)
        for number in range(2000):
            data = begin if number == 0 else b"x" * 65536
            if not announced:
                data = b"%x\r\n%s\r\n" % (len(data), data)
            try:
                connection.sendall(data)
            except (TimeoutError, ConnectionError):
                break
            sent += len(data)
            try:
                answer = connection.recv(4096)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            assert b" 413 " in answer
            break
    return sent


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"scope": "acme"}, 400),
        ({"file": ("a.md", b"x")}, 400),
        ({"file": ("a.md", b"x"), "scope": "acme", "surprise": "1"}, 400),
        ({"file": ("a.md", b"x"), "scope": "acme", "language": "english"}, 400),
        ({"file": ("a.md", b"x"), "scope": "acme", "valid_from": "2026-01-01T00:00"}, 400),
        ({"file": ("a.md", b"x"), "scope": "acme", "document_id": "no id"}, 400),
        ({"file": ("a.md", b"x"), "scope": "acme", "audiences": "no name"}, 400),
    ],
)
def test_a_form_that_does_not_fit_leaves_nothing_behind(
    idle: Served, fields: dict[str, Any], status: int
) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    answer = editor("POST", "/api/v1/documents", fields=fields)
    assert answer.status == status, answer.text
    assert answer.json["next_step"]
    assert list(spool_folder(idle.settings).iterdir()) == []
    assert waiting_jobs(idle.settings) == []


def test_another_kind_of_body_is_refused(idle: Served) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    answer = editor("POST", "/api/v1/documents", json={"scope": "acme"})
    assert (answer.status, answer.json["code"]) == (415, "unsupported_media_type")
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    cut = editor("POST", "/api/v1/documents", body=b"--b\r\nContent-Disp", headers=headers)
    assert cut.status == 400


@pytest.mark.requirement("P-16")
def test_jobs_are_taken_one_after_another_in_their_order(idle: Served) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    for number in range(3):
        editor.upload(f"{number}.md", f"# Note {number}\n\nThe number is {number}.")
    take_jobs(idle.settings)
    with psycopg.connect(idle.settings.database_url) as conn:
        rows = conn.execute(
            "select state, started_at, finished_at from kb.job order by job_no"
        ).fetchall()
    assert [row[0] for row in rows] == ["done"] * 3
    for before, after in pairwise(rows):
        assert before[2] <= after[1]


@pytest.mark.requirement("P-16")
def test_an_interrupted_job_is_taken_up_again_and_one_that_keeps_failing_ends(
    idle: Served, database: Database
) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    editor.upload("a.md", NOTE)
    with database.transaction("pipeline") as conn:
        assert jobs.claim(conn) is not None
    # The worker that claimed it is gone: the next one finds it marked as running.
    take_jobs(idle.settings)
    assert [(state, n) for _, state, n in waiting_jobs(idle.settings)] == [("done", 2)]
    editor.upload("b.md", NOTE)
    with psycopg.connect(idle.settings.database_url) as conn:
        conn.execute("update kb.job set state = 'running', attempts = 3 where state = 'queued'")
    take_jobs(idle.settings)
    assert [state for _, state, _ in waiting_jobs(idle.settings)] == ["done", "failed"]
    listed = editor("GET", "/api/v1/jobs").json["items"]
    assert "Interrupted" in listed[0]["reason"]
    assert list(spool_folder(idle.settings).iterdir()) == []


@pytest.mark.requirement("P-16")
def test_a_killed_worker_loses_nothing(idle: Served) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    job_id = editor.upload("a.md", NOTE).json["job_id"]
    child = subprocess.Popen(
        [sys.executable, "-m", "kb.http.worker", "--linger-s", "30"],
        env=worker_environment(idle.settings, os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 240
        while editor("GET", f"/api/v1/jobs/{job_id}").json["state"] == "queued":
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    while not take_jobs(idle.settings):  # the server has yet to see that its client is gone
        time.sleep(0.02)
    assert editor("GET", f"/api/v1/jobs/{job_id}").json["state"] == "done"


def test_only_one_worker_runs_on_a_database(idle: Served, database: Database) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    editor.upload("a.md", NOTE)
    with database.owner_session() as conn:
        conn.execute("select pg_advisory_lock(%s)", [jobs.WORKER_LOCK])
        take_jobs(idle.settings)
        assert [state for _, state, _ in waiting_jobs(idle.settings)] == ["queued"]
        conn.execute("select pg_advisory_unlock(%s)", [jobs.WORKER_LOCK])
    take_jobs(idle.settings)
    assert [state for _, state, _ in waiting_jobs(idle.settings)] == ["done"]


def test_jobs_are_shown_to_who_started_them_and_to_administrators(idle: Served) -> None:
    one, other = (idle.client.with_key(make_key(idle.settings, "editor")) for _ in range(2))
    admin = idle.client.with_key(make_key(idle.settings, "admin"))
    elsewhere = idle.client.with_key(make_key(idle.settings, "admin", scopes=["other"]))
    job_id = one.upload("a.md", NOTE).json["job_id"]
    for client, seen in ((one, True), (admin, True), (other, False), (elsewhere, False)):
        listed = [job["job_id"] for job in client("GET", "/api/v1/jobs").json["items"]]
        assert listed == ([job_id] if seen else [])
        assert client("GET", f"/api/v1/jobs/{job_id}").status == (200 if seen else 404)


def test_an_upload_can_be_run_again_from_its_stored_bytes(idle: Served) -> None:
    from kb_resources.compose import open_line
    from kb_resources.model import DocumentKey

    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    editor.upload("a.md", NOTE, document_id="note")
    take_jobs(idle.settings)
    with open_line(idle.settings) as line:
        key = DocumentKey("acme", "note")
        line.run_all([key])
        [row] = line.rows([key])
    assert (row.state, row.name) == ("indexed", "a.md")


def test_a_refused_upload_says_why_and_leaves_no_bytes(idle: Served) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    job_id = editor.upload("a.exe", b"MZ\x90\x00" + b"\x00" * 200).json["job_id"]
    take_jobs(idle.settings)
    [document] = editor("GET", f"/api/v1/jobs/{job_id}").json["documents"]
    assert document["state"] == "unsupported"
    assert document["reason"]
    blobs = [path for path in Path(idle.settings.blob_location).rglob("*") if path.is_file()]
    assert blobs == []


@pytest.mark.requirement("P-17")
def test_the_worker_gets_the_settings_without_what_identity_needs(settings: Settings) -> None:
    given = worker_environment(settings, {"PATH": "/bin", "KB_SECRET": "x", "KB_SURPRISE": "y"})
    assert not IDENTITY_VARIABLES & given.keys()
    assert given["PATH"] == "/bin"
    assert "KB_SURPRISE" not in given
    assert load_settings(as_environment(settings)) == settings


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Temp\\Rechnung Nr. 5.pdf", "Rechnung Nr. 5.pdf"),
        ("a\x00b\n.md", "ab.md"),
        (".hidden", "hidden"),
        ("", "unnamed"),
        ("..", "unnamed"),
        ("отпуск.docx", "отпуск.docx"),
    ],
)
def test_a_file_name_keeps_nothing_but_its_name(given: str, kept: str) -> None:
    assert safe_name(given) == kept
    assert len(safe_name("ж" * 400 + ".md").encode()) <= 200


def test_a_form_is_read_whatever_the_chunks(tmp_path: Path) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="scope"\r\n\r\nacme\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        b"line one\r\n--not the end\r\n\r\n--b--\r\n"
    )
    for size in (1, 2, 7, 50, len(body)):
        reader = UploadReader(b"b", tmp_path, max_bytes=1000)
        for start in range(0, len(body), size):
            reader.feed(body[start : start + size])
        upload = reader.finish()
        assert upload.path.read_bytes() == b"line one\r\n--not the end\r\n"
        assert (upload.name, dict(upload.fields)) == ("a.txt", {"scope": ("acme",)})


def test_too_much_beside_the_file_is_refused(tmp_path: Path) -> None:
    reader = UploadReader(b"b", tmp_path, max_bytes=10)
    field = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n' + b"y" * 70_000
    with pytest.raises(InputError):
        reader.feed(field)
    for content_type in ("", "application/json", "multipart/form-data"):
        with pytest.raises(PolicyError):
            boundary_of(content_type)


def test_ten_uploads_at_once_all_arrive(idle: Served) -> None:
    from concurrent.futures import ThreadPoolExecutor

    editor = idle.client.with_key(make_key(idle.settings, "editor"))

    def send(number: int) -> int:
        client = Client(editor.base, editor.pool, editor.key)
        return client.upload(f"{number}.txt", f"note {number} ".encode() * 50_000).status

    with ThreadPoolExecutor(10) as threads:
        assert list(threads.map(send, range(10))) == [202] * 10
    assert len(waiting_jobs(idle.settings)) == 10


def test_a_server_leaves_jobs_to_a_worker_that_runs_elsewhere(idle: Served) -> None:
    with psycopg.connect(idle.settings.database_url, autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(%s)", [jobs.WORKER_LOCK])
        assert worker.work(idle.settings, linger_s=0.1, should_stop=lambda: False) is False
        child = subprocess.run(
            [sys.executable, "-m", "kb.http.worker"],
            env=worker_environment(idle.settings, os.environ),
            check=False,
        )
        assert child.returncode == worker.EXIT_NOT_ALONE
    assert worker.work(idle.settings, linger_s=0.1, should_stop=lambda: False) is True


@pytest.mark.requirement("B-26")
def test_a_scope_with_too_many_waiting_jobs_takes_no_more(
    idle: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.http.uploads.MAX_QUEUED", 1)
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    assert editor.upload("one.md", NOTE).status == 202
    answer = editor.upload("two.md", NOTE)
    assert (answer.status, answer.json["code"]) == (409, "backlog")
    assert answer.json["retryable"] is True
    assert len(list(spool_folder(idle.settings).iterdir())) == 1


@pytest.mark.requirement("B-26")
def test_a_job_whose_bytes_are_gone_ends_as_failed(idle: Served) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    job_id = editor.upload("one.md", NOTE).json["job_id"]
    (spool_folder(idle.settings) / job_id / "content").unlink()
    take_jobs(idle.settings)
    job = editor("GET", f"/api/v1/jobs/{job_id}").json
    assert job["state"] == "failed"
    assert "Upload the file again" in job["reason"]


@pytest.mark.requirement("P-34")
@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-03-01T12:00+01:00", "2026-03-01T11:00:00+00:00"),
        ("2026-07-01[Europe/Berlin]", "2026-06-30T22:00:00+00:00"),
        ("2026-07-01T12:00[Europe/Sofia]", "2026-07-01T09:00:00+00:00"),
    ],
)
def test_an_upload_says_since_when_it_holds_with_its_zone(
    idle: Served, written: str, stored: str
) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    answer = editor.upload("one.md", NOTE, document_id="note", audiences="", valid_from=written)
    assert answer.status == 202, answer.text
    take_jobs(idle.settings)
    [version] = editor("GET", "/api/v1/documents/acme/note/history").json["items"]
    [held] = version["validity"]
    assert datetime.fromisoformat(held["valid_from"]) == datetime.fromisoformat(stored)
    zone = written.partition("[")[2].rstrip("]")
    before, after = ("2026-01-01", "2026-12-31") if not zone else (
        f"2026-01-01[{zone}]", f"2026-12-31[{zone}]"
    )  # fmt: skip
    path = "/api/v1/documents/acme/note/intervals?as_of="
    assert editor("GET", path + before).json["items"] == []
    [interval] = editor("GET", path + after).json["items"]
    assert (interval["version"], interval["known_until"]) == (1, None)
    known = "/api/v1/documents/acme/note/intervals?known_at=2020-01-01"
    assert editor("GET", known).json["items"] == []


@pytest.mark.parametrize("written", ["2026-03-01T12:00", "2026-03-01", "2026-03-01[Mars/Base]"])
def test_a_time_without_a_zone_that_exists_is_refused(idle: Served, written: str) -> None:
    editor = idle.client.with_key(make_key(idle.settings, "editor"))
    answer = editor.upload("one.md", NOTE, valid_from=written)
    assert (answer.status, answer.json["code"]) == (400, "invalid_input")


def fed(reader: UploadReader, *chunks: bytes) -> None:
    for chunk in chunks:
        reader.feed(chunk)


@pytest.mark.parametrize(
    "start", [b"", b"--b--\r\n", b'--b\r\nContent-Disposition: form-data; x="']
)
def test_what_is_no_file_is_bounded_too(tmp_path: Path, start: bytes) -> None:
    reader = UploadReader(b"b", tmp_path, max_bytes=1000)
    with pytest.raises((PolicyError, InputError)):
        fed(reader, start, *[b"\r\n" * 2**14] * 40)
    reader.close()


def test_a_worker_that_cannot_be_started_is_tried_again(tmp_path: Path, idle: Served) -> None:
    """As where the machine has no room for a process: the supervisor itself goes on."""
    job_id = idle.client.with_key(make_key(idle.settings, "editor")).upload("a.md", NOTE).json
    command = tmp_path / "worker"
    log = access_log(level="INFO", form="json", file=tmp_path / "log")

    async def watch() -> None:
        services = replace(idle.app.state.services, jobs_waiting=asyncio.Event())
        supervisor = Supervisor(services, log, command=[str(command)], pause_s=0.01, look_s=0.01)
        task = asyncio.create_task(supervisor.run())
        while not (said := (tmp_path / "log").read_text()):
            assert not task.done()
            await asyncio.sleep(0.01)
        assert "worker_not_started" in said
        command.write_text(f"#!/bin/sh\ntouch {tmp_path}/came\n")
        command.chmod(0o700)
        while not (tmp_path / "came").exists():
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    assert job_id
    asyncio.run(watch())
    log.handlers[0].close()
