"""Erasing over HTTP: confirmed by hand, certified, gone from every store; and a server that only
reads, which says what it lacks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kb.http import worker
from kb_resources.settings import Settings
from kb_resources.store import jobs
from kb_resources.store.pool import Database
from kb_resources.store.server_binaries import wheel_bin_dir
from tests.read.http.conftest import LEAVE, Client, Served, make_key, serving
from tests.read.http.test_matrix import LOOKED_AT

CANARY = "quibblewarbler"
SECRET_TEXT = f"# Case {CANARY}\n\nThe {CANARY} was seen near the harbour on the second of May.\n"


@pytest.fixture(autouse=True)
def without_dagster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "no-dagster"))


@pytest.fixture
def own(settings: Settings) -> Iterator[Served]:
    with serving(settings, run_worker=False) as running:
        yield running


@pytest.fixture
def admin(own: Served) -> Client:
    return own.client.with_key(make_key(own.settings, "admin"))


def publish(own: Served, client: Client, document_id: str, text: str) -> None:
    given = {"audiences": "", "document_id": document_id}
    assert client.upload(f"{document_id}.md", text, **given).status == 202
    worker.work(own.settings, linger_s=0.3, should_stop=lambda: False)


def found(client: Client, query: str) -> list[str]:
    wish = {"query": query, "scope": "acme"}
    return [h["document_id"] for h in client("POST", "/api/v1/search", json=wish).json["hits"]]


def traces(settings: Settings) -> list[str]:
    """Where the canary still is: database, blobs, the data folder."""
    dumped = subprocess.run(
        [wheel_bin_dir() / "pg_dump", "--dbname", settings.database_url],
        capture_output=True,
        check=True,
    ).stdout
    files = [p for p in settings.home.rglob("*") if p.is_file()]
    named = [str(p) for p in files if CANARY in p.name or CANARY.encode() in p.read_bytes()]
    return [*named, *(["database"] if CANARY.encode() in dumped else [])]


@pytest.mark.requirement("O-12", "P-77")
def test_an_administrator_erases_a_document_with_its_waiting_uploads(
    own: Served, admin: Client
) -> None:
    publish(own, admin, CANARY, SECRET_TEXT)
    publish(own, admin, "leave", LEAVE)
    assert admin.upload("more.md", SECRET_TEXT + "More.\n", document_id=CANARY).status == 202
    assert found(admin, "seen near the harbour")[0] == CANARY
    assert "database" in traces(own.settings)
    path = f"/api/v1/documents/acme/{CANARY}/erase"
    wrong = admin("POST", path, json={"confirm": "leave", "reason": "asked"})
    assert (wrong.status, wrong.json["code"]) == (400, "confirm_differs")
    assert CANARY in found(admin, "seen near the harbour")
    done = admin("POST", path, json={"confirm": CANARY, "reason": "request 17"})
    assert done.status == 200, done.text
    made = done.json["certificate"]
    assert made["finished_at"]
    assert made["counts"]["database"]["job"] == 2
    assert made["counts"]["database"]["passage"] >= 1
    assert made["counts"]["files"]["deleted"] >= 1
    assert made["counts"]["blobs"]["deleted"] == 1
    assert traces(own.settings) == []
    assert "leave" in found(admin, "annual leave")
    listed = admin("GET", "/api/v1/erasures?scope=acme").json["items"]
    assert [item["erasure_id"] for item in listed] == [made["erasure_id"]]
    one = admin("GET", f"/api/v1/erasures/acme/{made['erasure_id']}").json
    assert one["reason"] == "request 17"
    assert one["actor"] == admin("GET", "/api/v1/me").json["actor"]
    assert admin("GET", f"/api/v1/documents/acme/{CANARY}").status == 404
    assert admin("POST", path, json={"confirm": CANARY, "reason": "again"}).status == 404


@pytest.mark.requirement("P-36")
def test_nothing_is_erased_while_the_git_export_is_on(settings: Settings, tmp_path: Path) -> None:
    exporting = replace(settings, export_git=tmp_path / "repository")
    with serving(exporting, run_worker=False) as own:
        admin = own.client.with_key(make_key(settings, "admin"))
        publish(own, admin, "leave", LEAVE)
        kept = tmp_path / "repository" / "acme" / "leave" / "document.md"
        assert "thirty days" in kept.read_text()
        wish = {"confirm": "leave", "reason": "asked"}
        answer = admin("POST", "/api/v1/documents/acme/leave/erase", json=wish)
        assert (answer.status, answer.json["code"]) == (409, "export_on")
        assert admin("DELETE", "/api/v1/documents/acme/leave?reason=old").status == 200
        assert not kept.exists()


def test_a_duplicate_of_an_erased_document_is_published_by_a_job(
    own: Served, admin: Client
) -> None:
    publish(own, admin, "first", LEAVE)
    publish(own, admin, "second", LEAVE)
    wish = {"confirm": "first", "reason": "asked"}
    done = admin("POST", "/api/v1/documents/acme/first/erase", json=wish).json
    assert len(done["job_ids"]) == 1
    worker.work(own.settings, linger_s=0.3, should_stop=lambda: False)
    assert found(admin, "annual leave") == ["second"]


@pytest.fixture
def reading(settings: Settings, database: Database) -> Iterator[tuple[Served, Client]]:
    """A server that holds the reading role's connection only, over documents of another."""
    with serving(settings, run_worker=False) as whole:
        publish(whole, whole.client.with_key(make_key(settings, "admin")), "leave", LEAVE)
    key = make_key(settings, "admin", scopes=None)
    narrow = replace(settings, database_url="", pipeline_database_url="")
    with serving(narrow, run_worker=False) as running:
        yield running, running.client.with_key(key)


@pytest.mark.requirement("P-17")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/reviews?scope=acme", None),
        ("POST", "/api/v1/reviews/acme/leave/release", LOOKED_AT),
        ("POST", "/api/v1/reviews/acme/leave/reject", LOOKED_AT),
        ("GET", "/api/v1/watches?scope=acme", None),
        ("POST", "/api/v1/watches", {"scope": "acme", "url": "https://example.org/"}),
        ("PATCH", "/api/v1/watches/0", {"state": "paused"}),
        ("DELETE", "/api/v1/watches/0", None),
        ("DELETE", "/api/v1/documents/acme/leave?reason=x", None),
        ("POST", "/api/v1/documents/acme/leave/restore", {}),
        ("PUT", "/api/v1/documents/acme/leave/audiences", {"audiences": []}),
        ("POST", "/api/v1/documents/acme/leave/erase", {"confirm": "leave", "reason": "x"}),
        ("GET", "/api/v1/erasures?scope=acme", None),
        ("GET", "/api/v1/erasures/acme/0", None),
    ],
)
def test_a_server_that_only_reads_says_what_to_configure(
    reading: tuple[Served, Client], method: str, path: str, body: Any
) -> None:
    answer = reading[1](method, path, json=body)
    assert (answer.status, answer.json["code"]) == (501, "read_only")
    assert "KB_PIPELINE_DATABASE_URL" in answer.json["next_step"]
    assert answer.json["retryable"] is False


@pytest.mark.requirement("P-17", "P-16")
def test_a_server_that_only_reads_takes_uploads_while_a_worker_runs_elsewhere(
    reading: tuple[Served, Client], settings: Settings, database: Database
) -> None:
    _, client = reading
    refused = client.upload("new.md", LEAVE + "New.\n")
    assert (refused.status, refused.json["code"]) == (503, "no_worker")
    assert "kb.http.worker" in refused.json["next_step"]
    with database.session("pipeline") as conn:
        conn.execute("select pg_advisory_lock(%s)", [jobs.WORKER_LOCK])
        assert client.upload("new.md", LEAVE + "New.\n").status == 202
    assert found(client, "annual leave") == ["leave"]


def test_an_uploads_folder_that_cannot_be_written_is_no_defect(
    reading: tuple[Served, Client], database: Database
) -> None:
    served, client = reading
    spool = served.settings.home / "uploads"
    for entry in spool.iterdir():
        entry.rmdir()
    spool.rmdir()
    spool.write_text("a file stands where the folder should")
    with database.session("pipeline") as conn:
        conn.execute("select pg_advisory_lock(%s)", [jobs.WORKER_LOCK])
        answer = client.upload("new.md", LEAVE)
    assert (answer.status, answer.json["code"]) == (503, "spool_away")
