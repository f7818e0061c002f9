"""Jobs: what people asked for over HTTP and how it ended, in the caller's transaction.

Belongs here: rows of the queue. What does not: doing the work (`kb.http.worker`). The queue takes
one job at a time with `for update skip locked`, see postgresql.org/docs, "SELECT".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from kb_resources.errors import NotFound
from kb_resources.store.documents import Conn
from kb_resources.store.sql import rows, sql

WORKER_LOCK = 0x6B62_6A6F_62  # "kbjob"
"""Advisory lock that the database's one worker holds for as long as it runs."""
MAX_ATTEMPTS = 3
"""How often an interrupted job is taken up before it counts as failed."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job.

    Attributes:
        job_no: order of arrival.
        kind: `ingest` (bytes that wait in the spool) or `resume` (a document that goes on).
        state: `queued`, `running`, `done` or `failed`.
        request: what the worker needs.
        documents: `{document_id, state, reason, version}` of each document once done.
        reason: why it failed, a sentence.
    """

    job_no: int
    job_id: str
    scope: str
    document_id: str
    kind: str
    state: str
    actor: str
    request: dict[str, Any]
    documents: list[dict[str, Any]]
    reason: str
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def add(
    conn: Conn,
    job_id: str,
    *,
    scope: str,
    document_id: str,
    kind: str,
    actor: str,
    request: Mapping[str, Any],
) -> None:
    """Queue a job."""
    conn.execute(
        sql("add_job"),
        {
            "job_id": job_id,
            "scope": scope,
            "document_id": document_id,
            "kind": kind,
            "actor": actor,
            "request": Jsonb(dict(request)),
        },
    )


def get(conn: Conn, job_id: str) -> JobRow:
    """One job or NotFound."""
    with conn.cursor(row_factory=class_row(JobRow)) as cursor:
        row = cursor.execute(sql("get_job"), {"job_id": job_id}).fetchone()
    if row is None:
        raise NotFound(f"There is no job {job_id!r}.", next_step="List the jobs.")
    return row


def scopes(conn: Conn) -> set[str]:
    """Names of all scopes that jobs speak of, also of those that they are to make."""
    return {name for (name,) in conn.execute(sql("scopes_of_jobs"))}


def list_jobs(
    conn: Conn, *, actor: str | None, limit: int, before: int | None = None
) -> list[JobRow]:
    """Jobs of the transaction's scopes, newest first; of one actor, or None for all."""
    with conn.cursor(row_factory=class_row(JobRow)) as cursor:
        return cursor.execute(
            sql("list_jobs"), {"actor": actor, "limit": limit, "before": before}
        ).fetchall()


def claim(conn: Conn) -> JobRow | None:
    """Take the oldest waiting job; the pipeline's, in a transaction of its own."""
    with conn.cursor(row_factory=class_row(JobRow)) as cursor:
        return cursor.execute(sql("claim_job")).fetchone()


def finish(
    conn: Conn, job: JobRow, *, documents: Sequence[Mapping[str, Any]] = (), reason: str = ""
) -> None:
    """Write how a running job ended; a reason means that it failed."""
    conn.execute(
        sql("finish_job"),
        {
            "job_no": job.job_no,
            "state": "failed" if reason else "done",
            "documents": Jsonb([dict(item) for item in documents]),
            "reason": reason[:2000],
        },
    )


def recover(conn: Conn, attempts: int = MAX_ATTEMPTS) -> list[tuple[str, str]]:
    """Queue again what was interrupted, or fail it; job id and new state of each."""
    recovered = rows(conn, "recover_jobs", {"attempts": attempts})
    return [(row["job_id"], row["state"]) for row in recovered]


def waiting_ids(conn: Conn, job_ids: Sequence[str]) -> set[str]:
    """Those of the ids whose jobs are queued or running in the transaction's scopes."""
    return {name for (name,) in conn.execute(sql("waiting_job_ids"), {"job_ids": list(job_ids)})}


def any_waiting(conn: Conn) -> bool:
    """Whether a job of the transaction's scopes is queued or running."""
    row = conn.execute(sql("any_job_waiting")).fetchone()
    return bool(row and row[0])


def worker_runs(conn: Conn) -> bool:
    """Whether a process holds the worker's lock on this database."""
    given = {"high": WORKER_LOCK >> 32, "low": WORKER_LOCK & 0xFFFF_FFFF}
    row = conn.execute(sql("worker_runs"), given).fetchone()
    return bool(row and row[0])


def count_waiting(conn: Conn) -> int:
    """Queued jobs of the transaction's scopes."""
    row = conn.execute(sql("count_waiting_jobs")).fetchone()
    return int(row[0]) if row else 0


def id_awaited_by_others(conn: Conn, scope: str, document_id: str, readers: Sequence[str]) -> bool:
    """Whether an upload that waits will give a document of this id to none of `readers`."""
    given = {"scope": scope, "document_id": document_id, "readers": list(readers)}
    row = conn.execute(sql("id_awaited_by_others"), given).fetchone()
    return bool(row and row[0])


def requeue(conn: Conn, job: JobRow) -> None:
    """Put a job back that the worker was told to leave; the attempt does not count."""
    conn.execute(sql("requeue_job"), {"job_no": job.job_no})


def digest_known(conn: Conn, scope: str, digest: str) -> bool:
    """Whether a version of the scope holds these bytes."""
    row = conn.execute(sql("digest_in_scope"), {"scope": scope, "digest": digest}).fetchone()
    return bool(row and row[0])
