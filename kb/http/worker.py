"""`python -m kb.http.worker`: takes jobs one after another, in a process of its own.

Belongs here: claiming jobs, running the line for them, writing how they ended. What does not: the
queue's rows (`store.jobs`), starting this process (`supervisor`). One worker runs per database: an
advisory lock says so, and whoever holds it knows that jobs still marked running were interrupted.
See https://www.postgresql.org/docs/current/explicit-locking.html, "Advisory Locks".
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import FrameType

from kb.http.uploads import drop_spool, spool_folder
from kb.running import run_keys
from kb_resources.acquire.stored import stored_digest, stored_uri
from kb_resources.compose import open_line
from kb_resources.errors import KbError, UnavailableError
from kb_resources.model import DocumentKey, Source, SourceKind
from kb_resources.settings import Settings, load_settings
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest
from kb_resources.store import jobs
from kb_resources.store.jobs import JobRow
from kb_resources.store.pool import Database

POLL_S = 0.25
EXIT_NOT_ALONE, EXIT_AWAY = 3, 5
NICENESS = 19
"""The worker gives way: who searches waits for an answer, who ingests does not wait at all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Take jobs until none came for a while; 0, 3 beside another worker, 5 without a service."""
    parser = argparse.ArgumentParser(prog="python -m kb.http.worker", description=__doc__)
    parser.add_argument("--linger-s", type=float, default=20.0, help="idle seconds before ending")
    parser.add_argument("--forever", action="store_true", help="never end for lack of jobs")
    given = parser.parse_args(arguments)
    os.nice(NICENESS)
    stop = _stop_on_signals()
    try:
        alone = work(
            load_settings(),
            linger_s=float("inf") if given.forever else given.linger_s,
            should_stop=stop,
        )
    except UnavailableError as error:
        sys.stderr.write(f"kb worker: {error}\n")
        return EXIT_AWAY
    return 0 if alone else EXIT_NOT_ALONE


def work(
    settings: Settings,
    *,
    linger_s: float,
    should_stop: Callable[[], bool],
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Take jobs in order.

    Args:
        settings: of the installation.
        linger_s: how long to wait for another job.
        should_stop: asked between jobs and, inside one, between documents.
        sleep: waits, in seconds.
        monotonic: seconds.

    Returns:
        False, at once, where another worker has the lock.

    Raises:
        UnavailableError: database, disk or model is away; the job waits for the next worker.
    """
    with open_line(settings) as line:
        database = line.capabilities.database
        with _only_worker(database) as alone:
            if not alone:
                return False
            with database.transaction("pipeline") as conn:
                recovered = jobs.recover(conn)
            for job_id, state in recovered:
                if state == "failed":
                    drop_spool(spool_folder(settings) / job_id)
            idle_since = monotonic()
            while not should_stop() and monotonic() - idle_since < linger_s:
                with database.transaction("pipeline") as conn:
                    job = jobs.claim(conn)
                if job is None:
                    sleep(POLL_S)
                    continue
                _take(line, settings, job, should_stop)
                idle_since = monotonic()
    return True


def _take(line: Line, settings: Settings, job: JobRow, should_stop: Callable[[], bool]) -> None:
    """One job to its end, which is written whatever it is."""
    database = line.capabilities.database
    own = Line(replace(line.capabilities, actor=job.actor), line.languages)
    try:
        key = _prepare(own, settings, job)
        run_keys(own, [key], settings, actor=job.actor, should_stop=should_stop)
        if should_stop() and _unfinished(own, key):
            with database.transaction("pipeline") as conn:
                jobs.requeue(conn, job)
            return
        ends = [_end(own, key)]
    except UnavailableError:
        with database.transaction("pipeline") as conn:
            jobs.requeue(conn, job)
        raise
    except KbError as error:
        with database.transaction("pipeline") as conn:
            jobs.finish(conn, job, reason=str(error))
    else:
        _drop_unused_bytes(own, key)
        with database.transaction("pipeline") as conn:
            jobs.finish(conn, job, documents=ends)
    drop_spool(spool_folder(settings) / job.job_id)


def _prepare(line: Line, settings: Settings, job: JobRow) -> DocumentKey:
    """Store an upload's bytes and register its document."""
    key = DocumentKey(job.scope, job.document_id)
    if job.kind == "resume":
        return key
    content = spool_folder(settings) / job.job_id / "content"
    try:
        data = content.read_bytes()
    except FileNotFoundError as error:
        raise KbError(
            "The uploaded bytes are gone.", next_step="Upload the file again.", code="spool_lost"
        ) from error
    request, name = job.request, str(job.request["name"])
    digest = line.capabilities.blobs(job.scope).put(data)
    valid_from = request.get("valid_from")
    wanted = IngestRequest(
        scope=job.scope,
        source=Source(SourceKind.UPLOAD, stored_uri(job.scope, digest, name), name),
        document_id=job.document_id,
        audiences=tuple(request["audiences"]),
        valid_from=datetime.fromisoformat(valid_from) if valid_from else None,
        language=request.get("language"),
        actor=job.actor,
        readers=_readers(job),
    )
    try:
        return line.register(wanted)
    except KbError:
        _drop_unheld(line, job.scope, digest)
        raise


def _readers(job: JobRow) -> tuple[str, ...] | None:
    """Audiences that the uploader held, None for all: the id may be another's by now."""
    held = job.request.get("readers", job.request["audiences"])
    return None if held is None else tuple(held)


def _drop_unused_bytes(line: Line, key: DocumentKey) -> None:
    """Bytes that no version holds (refused before one was made) are not kept."""
    [row] = line.rows([key])
    if digest := stored_digest(row.source_uri):
        _drop_unheld(line, row.scope, digest)


def _drop_unheld(line: Line, scope: str, digest: str) -> None:
    with line.capabilities.database.transaction("pipeline") as conn:
        known = jobs.digest_known(conn, scope, digest)
    if not known:
        line.capabilities.blobs(scope).delete(digest)


def _unfinished(line: Line, key: DocumentKey) -> bool:
    [row] = line.rows([key])
    return row.state == "pending"


def _end(line: Line, key: DocumentKey) -> dict[str, object]:
    [row] = line.rows([key])
    return {
        "document_id": row.document_id,
        "state": row.state,
        "reason": row.reason,
        "version": row.latest_version,
    }


@contextmanager
def _only_worker(database: Database) -> Iterator[bool]:
    """Whether this process is the database's worker, for as long as the block lasts.

    The lock belongs to a transaction that stays open: one of a session would stay behind with a
    pooler's connection, and a second worker on the same connection would be given it, too.
    """
    with database.session("pipeline") as conn, conn.transaction():
        conn.execute(
            "select set_config(name, '0', true) from pg_settings"
            " where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')"
        )
        row = conn.execute("select pg_try_advisory_xact_lock(%s)", [jobs.WORKER_LOCK]).fetchone()
        yield bool(row and row[0])


def _stop_on_signals() -> Callable[[], bool]:
    asked = False

    def ask(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    return lambda: asked


if __name__ == "__main__":
    sys.exit(main())
