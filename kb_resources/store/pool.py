"""Connections to the knowledge base, by role.

Everything a transaction depends on (role, scope, time limits) is set inside it and ends with it,
so that nothing leaks into the next user of the connection, be that ours or a pooler's in
transaction mode. Belongs here: pools, transactions, their settings. What does not: SQL.
See https://www.psycopg.org/psycopg3/docs/basic/transactions.html and
https://www.pgbouncer.org/features.html.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kb_resources.errors import InputError, PolicyError
from kb_resources.model.ids import validate_scope
from kb_resources.store.connection_pool import Connection, ConnectionPool
from kb_resources.store.roles import APP_ROLE, KNOWLEDGE_DATABASE, PIPELINE_ROLE, Role
from kb_resources.store.translate import cannot_connect, translate

if TYPE_CHECKING:
    from kb_resources.store.server import EmbeddedServer

_BEGIN = """
    begin;
    select set_config('app.scope', {scope}, true),
           set_config('statement_timeout', {statement}, true),
           set_config('lock_timeout', {lock}, true),
           set_config('idle_in_transaction_session_timeout', {idle}, true),
           set_config('role', {role}, true)
"""
"""Both in one message: a transaction of one statement takes three round trips instead of five."""

PREPARE_AFTER = 3
PREPARED = 200
"""The line's statements are planned once a connection: half of what the server did for a small
document was planning. Not where a pooler stands between, which makes up a process number of its
own and lends another backend to each transaction. psycopg forgets what it prepared at every
rollback, so a migration costs one try."""
_WHERE_ASKED = 2**31
"""Readers prepare what says so: the calls of functions that keep plans of their own. Other plans
depend on the scope."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds; 0 is none, except for the first two.

    Attributes:
        connect_s: until a connection stands.
        checkout_s: until a pooled connection is free.
        statement_s: one statement.
        lock_s: one wait for a lock.
        idle_s: a transaction without a statement.
    """

    connect_s: float = 5.0
    checkout_s: float = 30.0
    statement_s: float = 60.0
    lock_s: float = 10.0
    idle_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Access:
    """How to become a role.

    Attributes:
        dsn: connection string.
        set_role: role to take on in each transaction, or None where the connection has it.
    """

    dsn: str
    set_role: str | None = None


class Database:
    """Pools of connections per role, opened when first used; close it when done.

    Threads may share one; a forked process may not.

    Args:
        owner: how to connect as the schema's owner.
        pipeline: as the pipeline.
        app: as the reading side.
        application_name: shown in pg_stat_activity.
        timeouts: limits for every transaction.
        max_size: connections per role at most.
    """

    def __init__(
        self,
        owner: Access,
        pipeline: Access,
        app: Access,
        *,
        application_name: str = "kb",
        timeouts: Timeouts | None = None,
        max_size: int = 8,
    ) -> None:
        self._access: dict[Role, Access] = {"owner": owner, "pipeline": pipeline, "app": app}
        self._application_name = application_name
        self._timeouts = timeouts or Timeouts()
        self._max_size = max_size
        self._pools: dict[Role, ConnectionPool] = {}
        self._guard = threading.Lock()

    @classmethod
    def embedded(
        cls,
        server: EmbeddedServer,
        *,
        dbname: str = KNOWLEDGE_DATABASE,
        application_name: str = "kb",
        timeouts: Timeouts | None = None,
        max_size: int = 8,
    ) -> Self:
        """On the embedded server, whose socket admits each role as itself."""
        return cls(
            Access(server.dsn("owner", dbname)),
            Access(server.dsn("pipeline", dbname)),
            Access(server.dsn("app", dbname)),
            application_name=application_name,
            timeouts=timeouts,
            max_size=max_size,
        )

    @classmethod
    def external(
        cls,
        owner_dsn: str,
        *,
        pipeline_dsn: str = "",
        app_dsn: str = "",
        application_name: str = "kb",
        timeouts: Timeouts | None = None,
        max_size: int = 8,
    ) -> Self:
        """On your own server; a role without its own DSN is the owner with SET ROLE.

        SET ROLE protects against our mistakes, not against injected SQL, which could reset it:
        give the reading side its own DSN in production, and leave the owner's empty there. A role
        that no DSN leads to is refused when it is first used.
        """
        return cls(
            Access(owner_dsn),
            Access(pipeline_dsn or owner_dsn, None if pipeline_dsn else PIPELINE_ROLE),
            Access(app_dsn or owner_dsn, None if app_dsn else APP_ROLE),
            application_name=application_name,
            timeouts=timeouts,
            max_size=max_size,
        )

    @contextmanager
    def transaction(
        self,
        role: Role,
        scope: str | Sequence[str] | None = None,
        *,
        timeouts: Timeouts | None = None,
    ) -> Iterator[Connection]:
        """One transaction as a role, committed at the end of the block, rolled back on any error.

        Args:
            role: whom to act as.
            scope: scope name or names that row level security lets through; None: no row of a
                scope is visible to the reading side.
            timeouts: limits of this transaction, instead of the database's.

        Raises:
            InputError: a scope name is malformed.
            UnavailableError: the database is away, busy, full or shutting down.
            ConflictError: a deadlock or another transaction was in the way; try again.
            PolicyError: the gate or missing rights forbid it.
            KbError: any other error of psycopg, translated.
        """
        limits = timeouts or self._timeouts
        begin = _begin(
            scope=_scope_setting(scope),
            statement=_milliseconds(limits.statement_s),
            lock=_milliseconds(limits.lock_s),
            idle=_milliseconds(limits.idle_s),
            role=self._access[role].set_role or "none",
        )
        try:
            with self._checked_out(role) as conn, _transaction(conn, begin):
                yield conn
        except psycopg.Error as error:
            raise translate(error) from error
        except UnicodeEncodeError as error:  # a parameter that UTF-8 has no form for
            raise InputError(
                "The text holds half of a surrogate pair, which no database can store.",
                next_step="Give text that can be encoded in UTF-8.",
                code="not_text",
            ) from error

    @contextmanager
    def session(self, role: Role) -> Iterator[Connection]:
        """An autocommitting connection of its own, closed at the end of the block.

        For what cannot run in a transaction (CREATE INDEX CONCURRENTLY, VACUUM) and for locks
        that belong to a session. There is no statement timeout. Where the role has no connection
        of its own, it is the owner's.

        Raises:
            KbError: as for `transaction`.
        """
        try:
            with self._connect(role) as conn:
                yield conn
        except psycopg.Error as error:
            raise translate(error) from error

    def owner_session(self) -> AbstractContextManager[Connection]:
        """`session` of the schema's owner."""
        return self.session("owner")

    def close(self) -> None:
        """Close all pools; a later transaction opens them again."""
        with self._guard:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _checked_out(self, role: Role) -> AbstractContextManager[Connection]:
        with self._guard:
            if role not in self._pools:
                self._pools[role] = ConnectionPool(
                    partial(self._connect, role), max_size=self._max_size
                )
            pool = self._pools[role]
        return pool.connection(timeout_s=self._timeouts.checkout_s)

    def _connect(self, role: Role) -> Connection:
        try:
            conn = psycopg.connect(self._conninfo(role), autocommit=True, prepare_threshold=None)
        except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
            raise cannot_connect(error) from error
        try:
            # Times come back in UTC. A pooler in transaction mode keeps track of this setting.
            found = conn.execute("select set_config('timezone', 'UTC', false), pg_backend_pid()")
            (_, backend) = found.fetchone() or ("", 0)
        except psycopg.Error:
            conn.close()
            raise
        if backend == conn.info.backend_pid:
            conn.prepare_threshold = PREPARE_AFTER if role == "pipeline" else _WHERE_ASKED
            conn.prepared_max = PREPARED
        return conn

    def _conninfo(self, role: Role) -> str:
        if not self._access[role].dsn:
            raise PolicyError(
                f"This process has no connection as the {role} role.",
                next_step=f"Do this where {_VARIABLES[role]} is set.",
                code="role_not_held",
            )
        return make_conninfo(
            self._access[role].dsn,
            application_name=self._application_name,
            connect_timeout=max(2, round(self._timeouts.connect_s)),
        )


_VARIABLES = {
    "owner": "KB_DATABASE_URL",
    "pipeline": "KB_PIPELINE_DATABASE_URL or KB_DATABASE_URL",
    "app": "KB_APP_DATABASE_URL or KB_DATABASE_URL",
}


@lru_cache(maxsize=1024)
def _begin(**settings: str) -> bytes:
    """The first message of a transaction; kept, for quoting costs more than sending."""
    quoted = {name: sql.Literal(value) for name, value in settings.items()}
    return sql.SQL(_BEGIN).format(**quoted).as_bytes(None)


@contextmanager
def _transaction(conn: Connection, begin: bytes) -> Iterator[None]:
    """`Connection.transaction()` with a first message of its own."""
    conn.execute(begin)
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):  # a connection that is gone rolled back by itself
            conn.execute("rollback")
        raise
    conn.execute("commit")


def _scope_setting(scope: str | Sequence[str] | None) -> str:
    names = [scope] if isinstance(scope, str) else scope or ()
    return ",".join(map(validate_scope, names))


def _milliseconds(seconds: float) -> str:
    return str(max(0, round(seconds * 1000)))
