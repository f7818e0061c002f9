"""`kb keys`, `kb members` and `kb serve` as commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from kb.cli.errors import guard
from kb.cli.group import cli
from kb_resources.compose import open_database
from kb_resources.settings import Settings, as_environment
from tests.read.http.conftest import ROOT, serving

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command in this process; its exit code, and its JSON or error."""
    for name, value in as_environment(settings).items():
        monkeypatch.setenv(name, value)

    def command(*arguments: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = guard(cli, [*arguments, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out or err or "null")

    return command


def test_a_key_made_on_the_command_line_opens_the_server(settings: Settings, run: Run) -> None:
    code, made = run("keys", "create", "--name", "ci", "--scope", "acme", "--expires", "90d")
    assert code == 0
    code, listed = run("keys", "list")
    assert [(item["key_id"], item["role"]) for item in listed] == [(made["key_id"], "viewer")]
    assert made["key"] not in json.dumps(listed)
    with serving(settings, run_worker=False) as own:
        assert own.client.with_key(made["key"])("GET", "/api/v1/me").status == 200
        _, rotated = run("keys", "rotate", made["key_id"], "--overlap", "0s")
        assert own.client.with_key(made["key"])("GET", "/api/v1/me").status == 401
        assert own.client.with_key(rotated["key"])("GET", "/api/v1/me").status == 200


def test_every_key_is_listed_however_many_there_are(settings: Settings, run: Run) -> None:
    with open_database(settings) as database, database.transaction("owner") as conn:
        conn.execute(
            "insert into kb.api_key"
            " (key_id, name, secret_hash, role, scopes, audiences, created_by)"
            " select 'k' || lpad(n::text, 11, '0'), 'k' || n, sha256(n::text::bytea), 'viewer',"
            " '{acme}', '{}', 'test' from generate_series(1, 1005) n"
        )
    _, listed = run("keys", "list")
    assert len(listed) == 1005


def test_revoking_and_members_on_the_command_line(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    _, made = run("keys", "create", "--name", "root", "--role", "admin", "--all-scopes")
    assert guard(cli, ["keys", "revoke", made["key_id"]]) == 4
    assert "last administrator" in capsys.readouterr().err
    assert guard(cli, ["members", "set", "anna", "--role", "admin", "--all-scopes"]) == 0
    assert guard(cli, ["keys", "revoke", made["key_id"]]) == 0
    assert guard(cli, ["members", "remove", "anna"]) == 4
    _, listed = run("members", "list")
    assert [(item["subject"], item["role"], item["scopes"]) for item in listed] == [
        ("anna", "admin", None)
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("keys", "create", "--name", "x"),
        ("keys", "create", "--name", "x", "--scope", "acme", "--all-scopes"),
        ("keys", "create", "--name", "x", "--scope", "No Scope"),
        ("keys", "create", "--name", "x", "--scope", "acme", "--expires", "soon"),
        ("keys", "create", "--name", "", "--scope", "acme"),
        ("keys", "rotate", "000000000000", "--overlap", "31d"),
    ],
)
def test_what_does_not_fit_is_said_with_a_next_step(run: Run, arguments: tuple[str, ...]) -> None:
    code, error = run(*arguments)
    assert code == 2
    assert error["error"]["next_step"]


def test_a_key_that_is_not_there_is_not_found(run: Run) -> None:
    assert run("keys", "rotate", "000000000000")[0] == 3


@pytest.fixture
def home(models_dir: Path) -> Iterator[dict[str, str]]:
    """The environment of an installation that does not exist yet."""
    folder = Path(tempfile.mkdtemp(prefix="kb-serve-"))
    folder.chmod(0o711)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "DAGSTER_"))}
    environment = kept | {"KB_HOME": str(folder / "home"), "KB_MODELS_DIR": str(models_dir)}
    yield environment
    subprocess.run(
        [sys.executable, "-m", "kb.cli", "db", "stop"],
        env=environment,
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    shutil.rmtree(folder)


def served_once(environment: dict[str, str], use: Callable[[str], None]) -> str:
    """Start `kb serve`, use it, stop it by Ctrl-C; what it printed."""
    command = [sys.executable, "-m", "kb.cli", "serve", "--port", "0"]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        assert child.stdout is not None
        printed = ""
        try:
            while "Serving on" not in printed:
                line = child.stdout.readline()
                assert line, f"it ended: {printed}"
                printed += line
            use(re.search(r"http://\S+", printed)[0])  # type: ignore[index]
            child.send_signal(signal.SIGINT)
            assert child.wait(240) == 0
        finally:
            child.kill()
    return printed


@pytest.mark.requirement("P-56", "P-69")
def test_kb_serve_from_nothing(home: dict[str, str]) -> None:
    def look(base: str) -> None:
        deadline = time.monotonic() + 240
        while True:
            try:
                if urllib3.request("GET", f"{base}/ready", retries=False).status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            assert time.monotonic() < deadline
            time.sleep(0.1)

    first = served_once(home, look)
    [key] = re.findall(r"kb_[a-z0-9]{12}_[\w-]{43}", first)
    secret = Path(home["KB_HOME"]) / "secret"
    assert secret.stat().st_mode & 0o777 == 0o600

    def use(base: str) -> None:
        look(base)
        headers = {"Authorization": f"Bearer {key}"}
        assert (
            urllib3.request("GET", f"{base}/api/v1/me", headers=headers).json()["role"] == "admin"
        )

    assert "kb_" not in served_once(home, use)
