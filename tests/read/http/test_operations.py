"""Running it: health, readiness, metrics, headers, log lines, problems, the published schema."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kb.http import problems, work
from kb.http.logs import access_log
from kb.http.openapi import DOCUMENT, schema_text
from kb_resources import errors
from kb_resources.settings import Settings
from tests.read.http.conftest import ROOT, Client, Installation, Served, make_key, serving

SECRET_WORDS = "zanzibar pineapple"


@pytest.fixture
def viewer(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["viewer"])


@pytest.fixture
def admin(served: Served, installation: Installation) -> Client:
    return served.client.with_key(installation.keys["admin"])


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[tuple[logging.Logger, Path]]:
    """A log in a file; the logger is taken down again."""
    file = tmp_path / "logs" / "access.log"
    log = access_log(level="INFO", form="json", file=file)
    yield log, file
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()


def test_health_asks_nobody_and_ready_asks_the_database(settings: Settings) -> None:
    with serving(settings, run_worker=False) as own:
        assert own.client("GET", "/health").json == {"status": "ok"}
        assert own.client("GET", "/ready").json == {"status": "ready"}


@pytest.mark.requirement("P-68")
def test_metrics_tell_rates_latencies_backlog_and_verdicts(viewer: Client, admin: Client) -> None:
    viewer("POST", "/api/v1/search", json={"query": "leave", "scope": "acme"})
    assert viewer("GET", "/metrics").status == 403
    text = admin("GET", "/metrics").text
    assert 'kb_http_requests_total{method="POST",route="/api/v1/search",status="200"}' in text
    assert 'kb_http_request_seconds_bucket{le="0.1",method="POST",route="/api/v1/search"}' in text
    assert 'kb_documents{state="quarantined"} 1.0' in text
    assert 'kb_versions{verdict="clean"} 3.0' in text
    assert 'kb_jobs{state="queued"} 0.0' in text
    assert 'kb_searches_total{mode="hybrid"}' in text


def test_metrics_name_neither_scopes_nor_documents_nor_addresses(
    viewer: Client, admin: Client
) -> None:
    viewer("GET", "/some/made/up/path")
    viewer("GET", "/api/v1/documents/acme/leave")
    text = admin("GET", "/metrics").text
    for name in ("acme", "leave", "made/up"):
        assert name not in text


@pytest.mark.parametrize("path", ["/", "/health", "/api/v1/me", "/nothing", "/static/page.css"])
def test_every_answer_carries_the_security_headers(viewer: Client, path: str) -> None:
    headers = viewer("GET", path).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-correlation-id"]


def test_answers_of_the_api_are_not_cached(viewer: Client) -> None:
    assert viewer("GET", "/api/v1/me").headers["cache-control"] == "no-store"


@pytest.mark.requirement("P-65")
def test_a_log_line_holds_ids_and_numbers_and_no_text(
    installation: Installation, logged: tuple[logging.Logger, Path]
) -> None:
    log, file = logged
    with serving(installation.settings, run_worker=False, log=log) as own:
        client = own.client.with_key(installation.keys["viewer"])
        client("POST", "/api/v1/search", json={"query": SECRET_WORDS, "scope": "acme"})
        client("GET", f"/api/v1/documents?scope=acme&q={SECRET_WORDS.replace(' ', '+')}")
        client("GET", f"/{SECRET_WORDS.replace(' ', '-')}?x=1")
        client("POST", "/api/v1/search", json={"query": "annual leave", "scope": "acme"})
        client("POST", "/auth/session", json={"key": "kb_zanzibar"})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 5
    assert {"method", "route", "status", "duration_ms", "actor", "correlation_id"} <= set(lines[0])
    text = file.read_text()
    for word in ("zanzibar", "pineapple", "thirty", "?", installation.keys["viewer"]):
        assert word not in text


@pytest.mark.requirement("P-65")
def test_log_files_are_rotated_at_ten_megabytes_and_five_are_kept(
    logged: tuple[logging.Logger, Path],
) -> None:
    log, file = logged
    fields = {"event": "x", "filler": "y" * 400_000}
    for _ in range(200):
        log.info("x", extra={"fields": fields})
    kept = list(file.parent.iterdir())
    assert len(kept) == 5
    assert all(path.stat().st_size <= 10 * 2**20 for path in kept)


def test_something_unexpected_is_a_problem_without_its_words(
    installation: Installation,
    logged: tuple[logging.Logger, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, file = logged

    def broken(*_args: Any, **_given: Any) -> Any:
        raise RuntimeError(SECRET_WORDS)

    with serving(installation.settings, run_worker=False, log=log) as own:
        monkeypatch.setattr(type(own.app.state.services.reader.retriever), "search", broken)
        client = own.client.with_key(installation.keys["viewer"])
        answer = client("POST", "/api/v1/search", json={"query": "x", "scope": "acme"})
    assert (answer.status, answer.json["code"]) == (500, "unexpected")
    assert "zanzibar" not in answer.text + file.read_text()
    defect = next(json.loads(line) for line in file.read_text().splitlines() if "defect" in line)
    assert defect["error"] == "RuntimeError"
    assert defect["correlation_id"] == answer.json["correlation_id"]
    assert any("broken" in place for place in defect["place"])


@pytest.mark.requirement("B-26")
def test_every_class_of_error_has_a_status() -> None:
    expected = {
        errors.InputError: 400,
        errors.ScopeRequired: 400,
        errors.PolicyError: 403,
        errors.NotFound: 404,
        errors.ConflictError: 409,
        errors.UnavailableError: 503,
        errors.IntegrityError: 500,
        errors.KbError: 500,
    }
    classes = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.KbError)
    }
    assert classes == set(expected)
    for kind, status in expected.items():
        assert problems.status_of(kind("x")) == status


@pytest.mark.requirement("B-26")
def test_a_database_that_is_away_is_a_503_with_a_next_step(settings: Settings) -> None:
    from kb_resources.store.pool import Database

    gone = "host=/nonexistent dbname=kb user=kb_app"
    with serving(settings, run_worker=False) as own:
        key = make_key(settings, "viewer")
        services = own.app.state.services
        own.app.state.services = replace(services, database=Database.external(gone))
        answer = own.client.with_key(key)("GET", "/api/v1/me")
        ready = own.client("GET", "/ready")
        own.app.state.services = services
    for found in (answer, ready):
        assert found.status == 503
        assert found.json["retryable"] is True
        assert found.json["next_step"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("PATCH", "/health", 405, "method_not_allowed"),
        ("GET", "/static/..%2f..%2fapp.py", 404, "not_found"),
    ],
)
def test_what_is_not_there_is_a_problem_too(
    viewer: Client, method: str, path: str, status: int, code: str
) -> None:
    answer = viewer(method, path)
    assert (answer.status, answer.json["code"]) == (status, code)


def test_a_body_that_is_too_large_is_refused_while_it_comes(viewer: Client) -> None:
    body = {"query": "x" * 2_000_000, "scope": "acme"}
    answer = viewer("POST", "/api/v1/search", json=body)
    assert (answer.status, answer.json["code"]) == (413, "request_too_large")


@pytest.mark.parametrize("path", ["/health", "/ready", "/", "/static/page.js", "/api/v1/me"])
def test_what_can_be_read_has_a_head(viewer: Client, path: str) -> None:
    """Which is what many monitors ask for."""
    whole, head = viewer("GET", path), viewer("HEAD", path)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(whole.body))
    assert viewer("HEAD", "/api/v1/search").status == 405


def test_a_full_queue_says_busy_instead_of_growing() -> None:
    import asyncio
    import threading

    workers = work.Workers("test", 1, max_waiting=1)
    release = threading.Event()

    async def fill() -> None:
        first = asyncio.create_task(workers.run(release.wait))
        second = asyncio.create_task(workers.run(release.wait))
        await asyncio.sleep(0)
        with pytest.raises(errors.UnavailableError) as busy:
            await workers.run(release.wait)
        assert busy.value.code == "busy"
        release.set()
        assert await asyncio.gather(first, second) == [True, True]
        assert workers.inside == 0

    asyncio.run(fill())
    workers.close()


@pytest.mark.requirement("P-69")
def test_the_committed_schema_is_the_servers(viewer: Client) -> None:
    assert DOCUMENT.read_text() == schema_text(), "run python -m kb.http.openapi"
    assert viewer("GET", "/api/v1/openapi.json").json == json.loads(schema_text())


@pytest.mark.requirement("P-56")
def test_kb_serve_makes_a_secret_and_shows_the_first_key_once(tmp_path: Path) -> None:
    from kb.access.bootstrap import bootstrap
    from kb.access.secret import ensure_secret, load_secret, secret_path

    settings = Settings(home=tmp_path)
    made, new = ensure_secret(settings)
    again, newer = ensure_secret(settings)
    assert (new, newer) == (True, False)
    assert made == again == load_secret(settings)
    assert secret_path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert str(made.value) not in repr(made)
    secret_path(tmp_path).chmod(0o644)
    with pytest.raises(errors.UnavailableError, match="read by others") as exposed:
        load_secret(settings)
    assert exposed.value.code == "secret_exposed"
    with pytest.raises(errors.UnavailableError, match="shorter") as short:
        load_secret(Settings(home=tmp_path, secret="short"))
    assert short.value.code == "secret_too_short"
    assert bootstrap(Settings(home=tmp_path, database_url="host=elsewhere")) is None


def test_a_secret_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a start that breaks off while it is written, nothing is left that stops the next one."""
    from kb.access import secret

    settings = Settings(home=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(secret.secrets, "token_urlsafe", lambda _: "\ud800")
        with pytest.raises(UnicodeEncodeError):
            secret.ensure_secret(settings)
    assert list(tmp_path.iterdir()) == []
    assert secret.ensure_secret(settings)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_the_server_does_not_load_dagster_or_a_parser() -> None:
    code = (
        "import sys, kb.http.app, kb.http.services\n"
        "bad = {'dagster', 'kb_assets', 'docling', 'onnxruntime'} & "
        "{m.split('.')[0] for m in sys.modules}\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
