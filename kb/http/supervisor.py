"""Keeps one ingest process running while jobs wait.

Belongs here: starting the worker, noticing its end, stopping it with the server. What does not: the
work (`worker`). A worker that dies is started again; the database counts the attempts of each job,
so that one that kills its worker ends as failed instead of for ever.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from logging import Logger

from kb.http.services import Services
from kb.http.worker import EXIT_NOT_ALONE
from kb_resources.errors import KbError
from kb_resources.settings import PREFIX, Settings, as_environment
from kb_resources.store import jobs

WORKER = (sys.executable, "-m", "kb.http.worker")
LOOK_S = 30.0
PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
STOP_S = 15.0
NOT_STARTED = 71
"""In place of an exit code (EX_OSERR of sysexits.h)."""
IDENTITY_VARIABLES = frozenset(
    f"{PREFIX}{name}"
    for name in (
        *("SECRET", "OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "ROLES_FILE"),
        *("PUBLIC_URL", "ROLES_MAX_AGE_S", "PERMISSION_KEYS", "LOG_KEY", "ANSWER_KEY"),
    )
)
"""What the pipeline has no business with."""


class Supervisor:
    """One server's hand on the worker.

    Args:
        services: of the server.
        log: of the server.
        command: that runs a worker.
        pause_s: between two starts; doubled with each worker in a row that failed.
        look_s: how often the queue is looked at without being told.
    """

    def __init__(
        self,
        services: Services,
        log: Logger,
        *,
        command: Sequence[str] = WORKER,
        pause_s: float = PAUSE_S,
        look_s: float = LOOK_S,
    ) -> None:
        self._services = services
        self._command = command
        self._pause_s = pause_s
        self._look_s = look_s
        self._log = log
        self._failures = 0
        self._child: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Until cancelled: a worker whenever jobs wait."""
        try:
            while True:
                await self._told()
                if await self._any_waiting():
                    await self._one_worker()
        finally:
            await self._stop()

    async def _told(self) -> None:
        """Wait until somebody queued a job, or for a look of our own."""
        event = self._services.jobs_waiting
        try:
            await asyncio.wait_for(event.wait(), self._look_s)
        except TimeoutError:
            return
        event.clear()

    async def _any_waiting(self) -> bool:
        def look() -> bool:
            with self._services.database.transaction("pipeline") as conn:
                return jobs.any_waiting(conn)

        try:
            return await self._services.work.run(look)
        except KbError as error:
            fields = {"event": "queue_unreadable", "code": error.code}
            self._log.warning("queue", extra={"fields": fields})
            return False

    async def _one_worker(self) -> None:
        """Run one worker to its end."""
        code = await self._ran()
        if code == EXIT_NOT_ALONE:  # somebody else's worker takes the jobs
            await asyncio.sleep(self._look_s)
            return
        if code:
            fields = {"event": "worker_ended", "code": code}
            self._log.warning("worker", extra={"fields": fields})
        self._failures = self._failures + 1 if code else 0
        self._services.jobs_waiting.set()  # look again: one may have come while it ended
        await asyncio.sleep(min(self._pause_s * 2**self._failures, MAX_PAUSE_S))

    async def _ran(self) -> int:
        """Exit code of a worker; `NOT_STARTED` where this machine has no room for a process now."""
        try:
            self._child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                env=worker_environment(self._services.settings, os.environ),
            )
        except OSError as error:
            fields = {"event": "worker_not_started", "error": error.strerror or str(error)}
            self._log.warning("worker", extra={"fields": fields})
            return NOT_STARTED
        code = await self._child.wait()
        self._child = None
        return code

    async def _stop(self) -> None:
        child = self._child
        if child is None or child.returncode is not None:
            return
        child.terminate()
        try:
            await asyncio.wait_for(child.wait(), STOP_S)
        except TimeoutError:
            child.kill()
            await child.wait()


def worker_environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: the installation's settings, without what identity needs."""
    kept = {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
    return kept | {
        name: value
        for name, value in as_environment(settings).items()
        if name not in IDENTITY_VARIABLES
    }
