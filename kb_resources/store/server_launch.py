"""Making a data folder and launching PostgreSQL in it; what a failed start means.

Belongs here: initdb, the start command, the wait until the server takes connections. What does
not: locks and who asks (`server`). pg_ctl is not used, because it hands paths to a shell.
See https://www.postgresql.org/docs/current/app-postgres.html.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from psycopg import pq
from psycopg.conninfo import make_conninfo

from kb_resources.errors import KbError, UnavailableError
from kb_resources.store.roles import EMBEDDED_OWNER
from kb_resources.store.server_account import Account
from kb_resources.store.server_config import render
from kb_resources.store.server_place import Place
from kb_resources.store.server_process import (
    clear_remains,
    cluster_name,
    is_alive,
    postmaster_pid,
    wait_until,
)

_ATTEMPTS = 3
_TAIL_CHARS = 2000
# Writes standard input to "$1", so that the file is the account's own and never half written.
_WRITE = 'cat > "$1.new" && mv -f "$1.new" "$1"'
# Leaves the program running as an orphan in this session and prints its PID.
_DETACH = 'log=$1; shift; "$@" < /dev/null >> "$log" 2>&1 & echo $!'
# The socket's folder is the door: only its owner (and root) gets in.
_ACCESS = ("--auth-local=trust", "--auth-host=reject", "--no-instructions")
# Case mapping by Unicode whatever the machine's locales are, byte order for indexes.
_LOCALE = (
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--lc-collate=C",
    "--lc-ctype=C",
)
_KNOWN_CAUSES = {
    "No space left on device": "Free space on the disk of {root}, then start again.",
    "Disk quota exceeded": "Raise the quota of {account} on {root}, then start again.",
    "could not map anonymous shared memory": "Give the machine or container more memory.",
    "is not compatible with this version": "Back up with the PostgreSQL release that wrote the "
    "data (`kb backup`), then restore into a new KB_HOME.",
    "Permission denied": "Give {account} access to {root}, or choose another KB_HOME.",
}


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts one server.

    Attributes:
        bin_dir: programs that the account can run.
        account: whom the server runs as.
        place: its folders; they exist.
        settings: lines of its configuration.
        lock: file descriptor of the home's lock. What is run here holds on to it, so that a
            starter that is killed does not let the next one in before initdb has ended.
    """

    bin_dir: Path
    account: Account
    place: Place
    settings: Mapping[str, str]
    lock: int

    def bring_up(self, *, timeout_s: float) -> None:
        """Initialise where needed, launch where needed, wait until connections are taken.

        Waits for a server that recovers or is still shutting down instead of disturbing it. Call
        it under the lock.

        Raises:
            UnavailableError: it does not come up; the message ends with its log.
            OSError: the system refused something.
        """
        deadline = time.monotonic() + timeout_s
        attempts = 0
        pid: int | None = None
        while (answer := ping(self.place)) != pq.Ping.OK:
            if time.monotonic() > deadline:
                raise self._failure(f"PostgreSQL was not ready within {timeout_s:.0f} s")
            if answer == pq.Ping.NO_RESPONSE and not self._lives(pid):
                if attempts == _ATTEMPTS:
                    raise self._failure("PostgreSQL does not start")
                self._initialise()
                clear_remains(self.place.data, self.place.socket_dir)
                pid = self._launch()
                attempts += 1
            self._wait_for_change(pid, answer)

    def _lives(self, pid: int | None) -> bool:
        return (pid is not None and is_alive(pid)) or postmaster_pid(self.place.data) is not None

    def _wait_for_change(self, pid: int | None, answer: pq.Ping) -> None:
        wait_until(lambda: ping(self.place) != answer or not self._lives(pid), timeout_s=1.0)

    def _initialise(self) -> None:
        """Make the data folder under another name and rename it when it is whole."""
        data = self.place.data
        if (data / "PG_VERSION").exists():
            return
        fresh = self.place.root / "data.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        unsynced = ["--no-sync"] if self.settings.get("fsync") == "off" else []
        program: list[str | Path] = [self.bin_dir / "initdb", "-D", fresh, "-U", EMBEDDED_OWNER]
        done = self.account.run([*program, *_ACCESS, *_LOCALE, *unsynced], lock=self.lock)
        if done.returncode != 0:
            raise self._failure("The database cluster cannot be made", done.stderr)
        config = fresh / "postgresql.conf"
        self._write(config, config.read_text("utf-8") + "\ninclude_if_exists 'kb.conf'\n")
        fresh.rename(data)

    def _launch(self) -> int:
        data, log = self.place.data, self.place.boot_log
        log.unlink(missing_ok=True)
        sockets = '"' + str(self.place.socket_dir).replace('"', '""') + '"'
        settings = {**self.settings, "unix_socket_directories": sockets}
        self._write(data / "kb.conf", render(settings))
        program: list[str | Path] = [
            self.bin_dir / "postgres",
            "-D",
            data,
            "-c",
            f"cluster_name={cluster_name(data)}",
        ]
        done = self.account.run(["/bin/sh", "-c", _DETACH, "sh", log, *program], lock=self.lock)
        if done.returncode != 0:
            raise self._failure("PostgreSQL cannot be launched", done.stderr)
        return int(done.stdout)

    def _write(self, file: Path, text: str) -> None:
        done = self.account.run(["/bin/sh", "-c", _WRITE, "sh", file], text=text, lock=self.lock)
        if done.returncode != 0:
            raise self._failure(f"{file} cannot be written", done.stderr)

    def _failure(self, what: str, output: str = "") -> KbError:
        tail = (output or self._log_tail()).strip()[-_TAIL_CHARS:]
        advice = next((step for cause, step in _KNOWN_CAUSES.items() if cause in tail), "")
        fallback = "Read the log under {root}, or set KB_DATABASE_URL to your own server."
        return UnavailableError(
            f"{what}. Its log ends:\n{tail}\n" if tail else f"{what}.",
            next_step=(advice or fallback).format(root=self.place.root, account=self.account.name),
        )

    def _log_tail(self) -> str:
        logs = sorted(self.place.log_dir.glob("*.log"), key=lambda path: path.stat().st_mtime)
        found = [path for path in (*logs[-1:], self.place.boot_log) if path.exists()]
        return "\n".join(path.read_text("utf-8", "replace")[-_TAIL_CHARS:] for path in found)


def ping(place: Place) -> pq.Ping:
    """Whether the server takes connections, turns them away for now, or does not answer."""
    conninfo = make_conninfo(
        **place.connection, user=EMBEDDED_OWNER, dbname="postgres", connect_timeout=5
    )
    return pq.Ping(pq.PGconn.ping(conninfo.encode()))
