"""The compose file's processes with the compose file's variables, against one Postgres.

Only containers are missing: each process gets the command and exactly the variables of its service,
a home of its own with the shared folders in it, and the image's own variables.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from kb_resources.store import jobs
from kb_resources.store.server import EmbeddedServer
from tests.conftest import make_open_folder

ROOT = Path(__file__).parents[2]
SHARED = ("blobs", "uploads", "dropzone")
RULE = "# Lockers\n\nEmpty lockers are reopened by the porter every Friday at noon.\n"
NOTE = "# Bicycles\n\nBicycles are parked in the yard behind hall four, never in the gateway.\n"
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@dataclass
class Deployment:
    """What runs, and how to reach it."""

    folder: Path
    services: dict[str, Any]
    given: dict[str, str]
    ports: dict[str, int]

    def environment(self, name: str) -> dict[str, str]:
        """The service's variables with real values, and what its image sets."""
        home = self.folder / name
        home.mkdir(exist_ok=True)
        for shared in SHARED:
            (self.folder / "volumes" / shared).mkdir(parents=True, exist_ok=True)
            if not (home / shared).exists():
                (home / shared).symlink_to(self.folder / "volumes" / shared)
        told = self.services[name]["environment"]
        return {
            **{variable: self.given[variable] for variable in told},
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "KB_HOME": str(home),
            "KB_MODELS_DIR": os.environ.get("KB_MODELS_DIR", str(ROOT / ".kb" / "models")),
            "DAGSTER_HOME": str(self.folder / "dagster"),
            "PYTHONWARNINGS": "ignore",
        }

    def command(self, name: str) -> list[str]:
        """The service's command, on this machine's ports and files."""
        image = {
            "code-server": ["dagster", "code-server", "start", "--host", "0.0.0.0", "--port",
                            "4000", "--module-name", "kb_assets.definitions",
                            "--location-name", "kb"],
            "api": ["kb", "serve", "--host", "0.0.0.0", "--port", "8765"],
        }  # fmt: skip
        ports = {"4000": "code-server", "3000": "webserver", "8765": "api"}
        return [
            "127.0.0.1"
            if part == "0.0.0.0"
            else str(self.ports[ports[part]])
            if part in ports
            else part.replace("/dagster/", f"{self.folder}/dagster/")
            for part in self.services[name].get("command") or image[name]
        ]

    def run(self, name: str, *command: str) -> str:
        """A command to its end as one of the services."""
        done = subprocess.run(
            command or self.command(name),
            env=self.environment(name),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, path: str, key: str, body: bytes | None = None, kind: str = "") -> Any:
        """The API's answer to a request with a key."""
        headers = {"Authorization": f"Bearer {key}", "Content-Type": kind or "application/json"}
        url = f"http://127.0.0.1:{self.ports['api']}{path}"
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, body, headers), timeout=60
            ) as got:
                return json.load(got)
        except urllib.error.HTTPError as error:
            pytest.fail(f"{path}: {error.code} {error.read().decode()}")

    def search(self, query: str, key: str) -> list[str]:
        body = json.dumps({"query": query, "scope": "acme", "mode": "text"}).encode()
        return [hit["document_id"] for hit in self.ask("/api/v1/search", key, body)["hits"]]


def wait_for(ready: Callable[[], object], timeout_s: float = 120.0) -> None:
    started = time.monotonic()
    while not ready():
        assert time.monotonic() - started < timeout_s
        time.sleep(0.5)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as got:
            return bool(got.status == 200)
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    folder = make_open_folder()
    server = EmbeddedServer(folder / "postgres")
    server.start()
    (folder / "dagster").mkdir()
    shutil.copy(ROOT / "deploy/dagster.yaml", folder / "dagster")
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    ports = {name: free_port() for name in ("code-server", "webserver", "api")}
    (folder / "dagster" / "workspace.yaml").write_text(
        (ROOT / "deploy/workspace.yaml")
        .read_text()
        .replace("host: code-server, port: 4000", f"host: 127.0.0.1, port: {ports['code-server']}")
    )
    found = Deployment(
        folder,
        services,
        {
            "KB_DATABASE_URL": server.dsn("owner"),
            "KB_PIPELINE_DATABASE_URL": server.dsn("pipeline"),
            "KB_APP_DATABASE_URL": server.dsn("app"),
            "KB_DAGSTER_DATABASE_URL": server.sqlalchemy_url(),
            "KB_DAGSTER_URL": server.sqlalchemy_url(),
            "KB_SECRET": "f" * 64,
            "KB_LOG_KEY": "a" * 64,
            "KB_PUBLIC_URL": f"http://127.0.0.1:{ports['api']}",
            "DAGSTER_EVENT_BATCH_SIZE": "50",
        },
        ports,
    )
    started: list[subprocess.Popen[bytes]] = []
    try:
        found.run("migrate")
        for name in ("code-server", "daemon", "webserver", "worker", "api"):
            with (folder / f"{name}.log").open("wb") as log:
                started.append(
                    subprocess.Popen(
                        found.command(name),
                        env=found.environment(name),
                        cwd=folder,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        wait_for(lambda: answers(f"http://127.0.0.1:{ports['api']}/ready"))
        wait_for(lambda: answers(f"http://127.0.0.1:{ports['webserver']}/server_info"))
        with psycopg.connect(server.dsn("app"), autocommit=True) as conn:
            wait_for(lambda: jobs.worker_runs(conn))  # the API takes no upload before
        yield found
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for log_file in sorted(folder.glob("*.log")):  # shown by pytest where something failed
            print(f"--- {log_file.name}\n{log_file.read_text()[-3000:]}")
        server.destroy()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def key(deployment: Deployment) -> str:
    made = deployment.run(
        "api", "kb", "keys", "create", "--name", "first", "--role", "admin", "--all-scopes",
        "--json",
    )  # fmt: skip
    return str(json.loads(made)["key"])


@pytest.mark.requirement("P-17", "P-57")
def test_an_upload_and_a_dropped_file_are_found_over_http(deployment: Deployment, key: str) -> None:
    parts = (
        b'--x\r\nContent-Disposition: form-data; name="scope"\r\n\r\nacme\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="lockers.md"\r\n'
        b"Content-Type: text/markdown\r\n\r\n" + RULE.encode() + b"\r\n--x--\r\n"
    )
    made = deployment.ask("/api/v1/documents", key, parts, "multipart/form-data; boundary=x")
    job = f"/api/v1/jobs/{made['job_id']}"
    wait_for(lambda: deployment.ask(job, key)["state"] in ("done", "failed"))
    assert deployment.ask(job, key)["documents"][0]["state"] == "indexed"
    assert deployment.search("lockers", key)

    dropped = deployment.folder / "volumes" / "dropzone" / "acme"
    dropped.mkdir()
    (dropped / "bicycles.md").write_text(NOTE)
    wait_for(lambda: deployment.search("bicycles", key))


def test_the_reading_side_may_not_ingest_and_the_pipeline_may_not_migrate(
    deployment: Deployment,
) -> None:
    (deployment.folder / "note.md").write_text(NOTE)
    for name, command in (
        ("api", ("ingest", str(deployment.folder / "note.md"), "--scope", "acme", "--no-dagster")),
        ("worker", ("db", "migrate")),
    ):
        refused = subprocess.run(
            ["kb", *command],
            env=deployment.environment(name),
            cwd=deployment.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert refused.returncode == 4, refused.stderr
        assert "has no connection as" in refused.stderr
