"""A client process that publishes what it is told to, and may be killed at any time.

Usage: python putter.py DSN SCOPE; then on standard input a number a line: publish that edition.
It answers `ready PID` once connected (the backend's process id), then `done` or `error` each time.
"""

from __future__ import annotations

import sys

import numpy as np

from kb_resources.errors import KbError
from kb_resources.model import Chunk, content_hash, passage_id
from kb_resources.model.chunk import embedding_input
from kb_resources.store.pool import Database
from kb_resources.store.postgres import PgStore
from kb_resources.store.records import Edition, VectorSpace

SPACE = VectorSpace("tiny@1", 4)
CHUNKS = 12


def texts_of(number: int) -> list[str]:
    """Texts of an edition: one stays the same, so that a vector is carried over."""
    return ["The clause that stays.", *(f"Edition {number}, clause {n}." for n in range(CHUNKS))]


def edition_of(number: int) -> Edition:
    """An edition whose every passage says which one it is."""
    from datetime import UTC, datetime, timedelta

    chunks, at = [], 0
    for ordinal, text in enumerate(texts_of(number)):
        digest = content_hash(text)
        chunks.append(
            Chunk(
                ordinal, passage_id("doc", ("T",), digest, 0), text, "T", ("T",), None, None,
                at, at + len(text), at, at + len(text), digest,
                content_hash(embedding_input("T", text)), 9,
            )
        )  # fmt: skip
        at += len(text) + 2
    body = "\n\n".join(texts_of(number))
    vector = np.array([1, 0, 0, 0], np.float32)
    return Edition(
        "doc",
        "T",
        body,
        tuple(chunks),
        content_hash(body),
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
        language="en",
        vectors={chunk.embed_hash: vector for chunk in chunks},
    )


def main() -> None:
    """Serve until standard input ends."""
    dsn, scope = sys.argv[1:]
    with Database.external(dsn, pipeline_dsn=dsn, app_dsn=dsn) as database:
        store = PgStore(database, SPACE)
        with database.transaction("pipeline") as conn:
            pid = conn.info.backend_pid
        sys.stdout.write(f"ready {pid}\n")
        sys.stdout.flush()
        for line in sys.stdin:
            try:
                store.put(edition_of(int(line)), scope=scope)
                answer = f"done {pid}"
            except KbError as error:
                answer = f"error {error.code}"
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
