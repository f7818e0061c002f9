"""What one server process has open, handed to routes by the application.

Belongs here: opening and closing in one place. What does not: deciding anything about a request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from kb.access.members import Authoriser, MemberTable, RoleFeed
from kb.access.oidc import Provider, Urllib3Http
from kb.access.secret import Secret, load_secret
from kb.http.work import Workers, cores
from kb.reader import Reader
from kb_resources.compose import open_database, open_line, open_retriever, own_server
from kb_resources.compose_answers import blob_reader, open_answerer
from kb_resources.errors import PolicyError, UnavailableError
from kb_resources.model.audiences import Permission, PermissionMap
from kb_resources.settings import Settings
from kb_resources.store import jobs
from kb_resources.store.pool import Database

if TYPE_CHECKING:
    from kb.http.metrics import Metrics
    from kb_resources.stages.capabilities import Capabilities
    from kb_resources.stages.line import Line


_THREADS = min(2 * cores(), 24)
_ANSWERS = 8
_SIGN_INS = 4


def _provider(settings: Settings, stack: ExitStack) -> Provider | None:
    if not settings.oidc_issuer:
        return None
    http = Urllib3Http()
    stack.callback(http.close)
    return Provider(
        settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret, http
    )


def permission_map(settings: Settings) -> PermissionMap:
    """What the permissions are called outside."""
    pairs = (text.partition("=") for text in settings.permission_keys)
    return PermissionMap.renamed({Permission(name): key.strip() for name, _, key in pairs})


def acts_as_pipeline(settings: Settings) -> bool:
    """Whether this process may act as the pipeline: decide about documents, start the worker.

    A reading side without the pipeline's connection leaves both to others
    (`python -m kb.http.worker --forever`).
    """
    return bool(not own_server(settings) or settings.database_url or settings.pipeline_database_url)


def utc_now() -> datetime:
    """Aware now."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Services:
    """One server's parts.

    Attributes:
        settings: of the installation.
        database: pools of its roles.
        reader: search and listings.
        secret: None where none is set; then every route but /health answers 503.
        authoriser: what people of the identity provider may do.
        provider: the identity provider, None where people sign in with keys only.
        searches: threads for searching.
        work: threads for everything else that blocks.
        answers: threads for answering, of which most wait for a model.
        sign_ins: threads for what strangers make wait for the identity provider.
        clock: aware now.
        jobs_waiting: set when a job was queued.
        changes: the pipeline's hand for decisions; None: this server only reads.
    """

    settings: Settings
    database: Database
    reader: Reader
    secret: Secret | None
    authoriser: Authoriser
    provider: Provider | None = None
    clock: Callable[[], datetime] = utc_now
    searches: Workers = field(default_factory=lambda: Workers("kb-search", _THREADS))
    work: Workers = field(default_factory=lambda: Workers("kb-work", _THREADS))
    answers: Workers = field(
        default_factory=lambda: Workers("kb-answer", _ANSWERS, max_waiting=100)
    )
    sign_ins: Workers = field(
        default_factory=lambda: Workers("kb-sign-in", _SIGN_INS, max_waiting=50)
    )
    jobs_waiting: asyncio.Event = field(default_factory=asyncio.Event)

    changes: Changes | None = None

    def line(self) -> Line:
        """What decisions about documents are made with, as the pipeline; opened on first use.

        Raises:
            PolicyError: this server holds the reading role only (`read_only`).
        """
        if self.changes is None:
            raise PolicyError(
                "This server only reads: it holds no connection of the pipeline.",
                next_step="Set KB_PIPELINE_DATABASE_URL for it, or use the kb command where that "
                "is set.",
                code="read_only",
            )
        return self.changes.line()

    def capabilities(self) -> Capabilities:
        """The capabilities of `line`; raises as it does."""
        return self.line().capabilities

    def require_worker(self) -> None:
        """Refuse work that nobody would take up.

        Raises:
            UnavailableError: this server starts no ingest process and none runs elsewhere
                (`no_worker`).
        """
        if self.changes is not None:
            return
        with self.database.transaction("app") as conn:
            running = jobs.worker_runs(conn)
        if not running:
            raise UnavailableError(
                "No ingest process takes jobs, and this server may not start one.",
                next_step="Run python -m kb.http.worker --forever where KB_PIPELINE_DATABASE_URL "
                "is set, with this server's KB_HOME/uploads, or set that variable here.",
                code="no_worker",
            )

    def close(self) -> None:
        """Stop the threads."""
        self.searches.close()
        self.work.close()
        self.answers.close()
        self.sign_ins.close()


class Changes:
    """The pipeline's line inside a server: for decisions, never for ingesting."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._stack = ExitStack()
        self._opened: Line | None = None

    def line(self) -> Line:
        """Open it, or give the open one."""
        with self._guard:
            if self._opened is None:
                self._opened = self._stack.enter_context(open_line(self._settings))
            return self._opened

    def close(self) -> None:
        """Close what was opened."""
        self._stack.close()


@contextmanager
def open_services(
    settings: Settings, *, clock: Callable[[], datetime] = utc_now
) -> Iterator[Services]:
    """Open database, retriever and threads for one server.

    A query embeds on one thread: with several searches at once, threads for one cost the others.

    Raises:
        UnavailableError: the database is away, or the secret is unusable.
    """
    settings = replace(settings, embed_threads=settings.embed_threads or 1)
    secret = load_secret(settings)
    with open_database(settings, max_size=_THREADS * 2 + _ANSWERS) as database:
        authoriser: Authoriser = MemberTable(database)
        if settings.roles_file is not None:
            authoriser = RoleFeed(
                settings.roles_file, settings.roles_max_age_s, permission_map(settings)
            )
        retriever = open_retriever(settings, database)
        answerer = open_answerer(settings, database, retriever)
        reader = Reader(database, retriever, answerer, blob_reader(settings))
        with ExitStack() as stack:
            changes = Changes(settings) if acts_as_pipeline(settings) else None
            if changes is not None:
                stack.callback(changes.close)
            services = Services(
                settings,
                database,
                reader,
                secret,
                authoriser,
                provider=_provider(settings, stack),
                clock=clock,
                changes=changes,
            )
            stack.callback(services.close)
            yield services


def services_of(request: Request) -> Services:
    """The services of the application that got the request."""
    found: Services = request.app.state.services
    return found


async def _services(request: Request) -> Services:
    """`services_of` for FastAPI, which sends a dependency that is no coroutine to a thread."""
    return services_of(request)


ServicesDep = Annotated[Services, Depends(_services)]


async def metrics_of(request: Request) -> Metrics:
    """The metrics of the application that got the request."""
    found: Metrics = request.app.state.metrics
    return found
