"""`python -m kb_assets.up`: web server, daemon and code server on the embedded Postgres.

Starts a supervisor in the background, waits until everything answers, and says where. `--stop`
stops what it started; `--foreground` stays. Belongs here: the command. What does not: keeping the
processes alive (`supervisor`) and asking whether they are well (`wellness`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kb_assets import wellness
from kb_assets.environment import child_environment, dagster_home, prepare_home
from kb_assets.supervisor import Child, Supervisor, running_supervisor, stop_supervisor
from kb_resources.errors import ConflictError, KbError, UnavailableError
from kb_resources.settings import Settings, load_settings

START_TIMEOUT_S = 600.0
"""Generous: a busy machine takes minutes, and a supervisor that ends is noticed at once."""
_SOCKET_PATH_MAX = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Start, stop or supervise; 0 when done, 5 when something is away."""
    parser = argparse.ArgumentParser(prog="python -m kb_assets.up", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address of the UI (%(default)s)")
    parser.add_argument("--port", type=int, default=3000, help="port of the UI (%(default)s)")
    parser.add_argument("--stop", action="store_true", help="stop what runs")
    parser.add_argument("--foreground", action="store_true", help="stay and supervise")
    given = parser.parse_args(arguments)
    try:
        settings = load_settings()
        if given.stop:
            return _stop(settings)
        if given.foreground:
            return _supervise(settings, given.host, given.port)
        return _start(settings, given.host, given.port)
    except KbError as error:
        print(error, file=sys.stderr)
        return 5


def _start(settings: Settings, host: str, port: int) -> int:
    home = prepare_home(settings)
    (settings.home / "dropzone").mkdir(parents=True, exist_ok=True)
    url = f"http://{host}:{port}"
    if running_supervisor(home) is None:
        _refuse_taken_port(host, port)
        logs = _logs(settings)
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / "supervisor.log").open("ab") as out:
            supervisor = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kb_assets.up", "--foreground"),
                    *("--host", host, "--port", str(port)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        _wait(url, home, logs, supervisor)
    print(
        f"Dagster: {url}\nDropzone: {settings.home / 'dropzone'}/<scope>/\n"
        f"Logs: {_logs(settings)}\nStop it with `make down`."
    )
    return 0


def _wait(url: str, home: Path, logs: Path, supervisor: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    missing = ""
    while time.monotonic() < until:
        if supervisor.poll() is not None:
            raise UnavailableError(
                "Dagster did not start.", next_step=f"Read {logs / 'supervisor.log'}."
            )
        before, missing = missing, wellness.missing(url)
        if not missing:
            return
        if missing != before:
            print(f"Waiting for {missing} …", file=sys.stderr)
        time.sleep(0.5)
    stop_supervisor(home)
    raise UnavailableError(
        f"After {START_TIMEOUT_S:.0f} s {missing} did not answer.",
        next_step=f"Read the files in {logs}.",
    )


def _supervise(settings: Settings, host: str, port: int) -> int:
    home = prepare_home(settings)
    environment = child_environment(settings)
    _prepare(settings, environment)
    runtime = _socket_folder(home)
    code_socket = runtime / "code.sock"
    workspace = home / "workspace.yaml"
    workspace.write_text(
        f"load_from:\n  - grpc_server: {{socket: {code_socket}, location_name: kb}}\n"
    )
    python = [sys.executable, "-m"]
    children = [
        Child(
            "code-server",
            (
                *(*python, "dagster", "code-server", "start", "--socket", str(code_socket)),
                *("--module-name", "kb_assets.definitions", "--location-name", "kb"),
            ),
            ready=code_socket,
        ),
        Child("daemon", (*python, "dagster._daemon", "run", "--workspace", str(workspace))),
        Child(
            "webserver",
            (
                *(*python, "dagster_webserver", "--host", host, "--port", str(port)),
                *("--workspace", str(workspace)),
            ),
        ),
    ]
    try:
        with Supervisor(home, children, environment, _logs(settings)) as supervisor:
            supervisor.run()
    finally:
        code_socket.unlink(missing_ok=True)
        if runtime != home:
            shutil.rmtree(runtime, ignore_errors=True)
    return 0


def _logs(settings: Settings) -> Path:
    """Not in DAGSTER_HOME, whose `logs` Dagster empties."""
    return settings.home.absolute() / "logs"


def _prepare(settings: Settings, environment: Mapping[str, str]) -> None:
    """Migrations, the model and Dagster's tables, before a sensor has seconds to answer in."""
    import dagster as dg

    from kb_resources.bindings.events import bury_runs, was_launched
    from kb_resources.compose import open_line

    with open_line(settings):
        pass
    os.environ.update(environment)
    with dg.DagsterInstance.get() as instance:
        # Their code server is gone, or this supervisor would not be starting one.
        bury_runs(instance, was_launched)


def _socket_folder(home: Path) -> Path:
    """A private folder whose name leaves room for a socket's path."""
    if len(os.fsencode(home / "code.sock")) <= _SOCKET_PATH_MAX:
        return home
    import tempfile

    return Path(tempfile.mkdtemp(prefix="kb-"))


def _refuse_taken_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConflictError(
                f"{host}:{port} cannot be served: {error.strerror}.",
                next_step="Stop what uses it, or choose another with --port.",
            ) from error


def _stop(settings: Settings) -> int:
    stopped = stop_supervisor(dagster_home(settings))
    print("Stopped." if stopped else "Nothing was running.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
